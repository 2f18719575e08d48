#include "cmocka_all.h"
int main(void){return 0;}
