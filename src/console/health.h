/* health.h: what a process says of itself: live (it runs), ready (it can do its job) and why not.
 * Any thread may set and read. */
#ifndef FGW_CONSOLE_HEALTH_H
#define FGW_CONSOLE_HEALTH_H

#include <jansson.h>

#include "base/bytes.h"

struct fgw_health;

struct fgw_health *fgw_health_new(const char *role);
void fgw_health_free(struct fgw_health *health);
/* reason: a static name of the thing ("storage", "metadata", "migrations"); NULL text: it is fine.
 * Logs one line when the state of a reason changes. */
void fgw_health_set(struct fgw_health *health, const char *reason, const char *text_or_null);
/* The same, with members for programs beside the text in the JSON; takes the object over. */
void fgw_health_set_more(struct fgw_health *health, const char *reason, const char *text,
                         json_t *more);
/* Called before each answer, to set the reasons that show only when looked for; does not wait. May be
 * called on several threads at once, until it is replaced (NULL: none). */
typedef void fgw_health_look(void *context, struct fgw_health *health);
void fgw_health_set_look(struct fgw_health *health, fgw_health_look *look, void *context);
bool fgw_health_ready(struct fgw_health *health);
/* {"ready":false,"role":"serve","reasons":[{"what":"storage","why":"...","since_ms":123}]}
 * and the members given for a reason. */
void fgw_health_json(struct fgw_health *health, struct fgw_buf *out);

#endif
