/* page.c: the console's page (web/index.html), part of the program as it stands in the tree. */
#include "console/ops.h"

__asm__(".pushsection .rodata\n"
        ".global fgw_console_page\n"
        "fgw_console_page:\n"
        ".incbin \"" FGW_CONSOLE_PAGE "\"\n"
        ".global fgw_console_page_end\n"
        "fgw_console_page_end:\n"
        ".popsection\n");

extern const uint8_t fgw_console_page[];
extern const uint8_t fgw_console_page_end[];

struct fgw_bytes fgw_ops_page(void)
{
    return fgw_bytes(fgw_console_page, (size_t)(fgw_console_page_end - fgw_console_page));
}
