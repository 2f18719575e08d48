/* sweep.c: deadlines of connections without a timer each. A loop with connections has one sweep: a
 * list of them and a timer that looks at all of them every FGW_CONN_SWEEP_MS; setting a deadline is
 * then one store. The sweep goes with the loop's last connection. */
#include "net/conn_internal.h"

struct fgw_sweep {
    struct fgw_sweep *next;
    struct fgw_loop *loop;
    struct fgw_timer *timer;
    struct fgw_list conns;
    bool sweeping;
};

static _Thread_local struct fgw_sweep *sweeps; /* one per loop of this thread: nearly always one */

static void free_sweep(struct fgw_sweep *sweep)
{
    struct fgw_sweep **link = &sweeps;
    while (*link != sweep) {
        link = &(*link)->next;
    }
    *link = sweep->next;
    fgw_timer_free(sweep->timer);
    fgw_xfree(sweep);
}

static void on_sweep(void *arg)
{
    struct fgw_sweep *sweep = arg;
    struct fgw_list todo;
    struct fgw_list *node;
    uint64_t now_ms = fgw_loop_now_ms(sweep->loop);
    sweep->sweeping = true;
    fgw_list_init(&todo);
    fgw_list_splice_back(&todo, &sweep->conns);
    /* a callback may close this connection and others: each is back in the list before its turn */
    while ((node = fgw_list_pop_front(&todo)) != NULL) {
        fgw_list_push_back(&sweep->conns, node);
        fgw_conn_check_deadlines(FGW_CONTAINER_OF(node, struct fgw_conn, node), now_ms);
    }
    sweep->sweeping = false;
    if (fgw_list_empty(&sweep->conns)) {
        free_sweep(sweep);
        return;
    }
    fgw_timer_start(sweep->timer, FGW_CONN_SWEEP_MS);
}

void fgw_sweep_add(struct fgw_conn *conn)
{
    struct fgw_sweep *sweep = sweeps;
    while (sweep != NULL && sweep->loop != conn->loop) {
        sweep = sweep->next;
    }
    if (sweep == NULL) {
        sweep = fgw_xcalloc(1, sizeof *sweep);
        sweep->loop = conn->loop;
        sweep->next = sweeps;
        sweeps = sweep;
        fgw_list_init(&sweep->conns);
        sweep->timer = fgw_timer_new(conn->loop, on_sweep, sweep);
        fgw_timer_start(sweep->timer, FGW_CONN_SWEEP_MS);
    }
    conn->sweep = sweep;
    fgw_list_push_back(&sweep->conns, &conn->node);
}

void fgw_sweep_remove(struct fgw_conn *conn)
{
    struct fgw_sweep *sweep = conn->sweep;
    fgw_list_remove(&conn->node);
    if (fgw_list_empty(&sweep->conns) && !sweep->sweeping) {
        free_sweep(sweep);
    }
}
