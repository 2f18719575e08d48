/* list.h: intrusive doubly linked list (circular, with a head node). */
#ifndef FGW_BASE_LIST_H
#define FGW_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"

struct fgw_list {
    struct fgw_list *next;
    struct fgw_list *prev;
};

static inline void fgw_list_init(struct fgw_list *head)
{
    head->next = head;
    head->prev = head;
}
static inline bool fgw_list_empty(const struct fgw_list *head)
{
    return head->next == head;
}
static inline void fgw_list_push_back(struct fgw_list *head, struct fgw_list *node)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}
static inline void fgw_list_push_front(struct fgw_list *head, struct fgw_list *node)
{
    fgw_list_push_back(head->next, node);
}
/* The node ends up linked to itself, so that removing twice is harmless. */
static inline void fgw_list_remove(struct fgw_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    fgw_list_init(node);
}
/* NULL when empty. */
static inline struct fgw_list *fgw_list_pop_front(struct fgw_list *head)
{
    struct fgw_list *node = head->next;
    if (node == head) {
        return NULL;
    }
    fgw_list_remove(node);
    return node;
}
/* Moves all of `from` behind the last node of `to`. */
static inline void fgw_list_splice_back(struct fgw_list *to, struct fgw_list *from)
{
    if (!fgw_list_empty(from)) {
        from->next->prev = to->prev;
        from->prev->next = to;
        to->prev->next = from->next;
        to->prev = from->prev;
        fgw_list_init(from);
    }
}

#endif
