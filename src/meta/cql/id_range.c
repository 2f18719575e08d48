/* id_range.c: which of one key's ids the next query asks for (key_rows.c, scan_range.c). At first all
 * that lie behind the last one seen; when the database refuses to pass over that many removed rows,
 * those of a range of 2^bits ids: a minute of versions at first (a refusal costs the database more than
 * many narrow answers), 4 times wider after an answer, 16 times narrower after a refusal, down to a
 * single id, whose row no database refuses.
 */
#include "meta/cql/cql_internal.h"

enum { ID_BITS = 8 * FGW_META_ID_SIZE, FIRST_BITS = 96, NARROWER_BITS = 4, WIDER_BITS = 2 };

/* `to` = behind -+ 2^bits; beyond the first or last id there is no limit. */
static void set_limit(struct cql_id_range *range)
{
    range->bounded = false;
    if (range->bits >= ID_BITS) {
        return;
    }
    range->to = range->behind;
    unsigned add = 1U << (range->bits % 8);
    for (unsigned i = FGW_META_ID_SIZE - range->bits / 8; i > 0 && add > 0; i--) {
        uint8_t *byte = &range->to.bytes[i - 1];
        unsigned changed = range->ascending ? *byte + add : *byte - add;
        add = (changed >> 8) != 0; /* the carry, or the borrow */
        *byte = (uint8_t)changed;
    }
    range->bounded = add == 0;
}

void cql_id_range_init(struct cql_id_range *range, bool ascending)
{
    *range = (struct cql_id_range){.ascending = ascending, .bits = ID_BITS};
    memset(range->behind.bytes, ascending ? 0 : 0xff, sizeof range->behind.bytes);
}

void cql_id_range_pass(struct cql_id_range *range, const struct fgw_id *id)
{
    int order = memcmp(id->bytes, range->behind.bytes, sizeof id->bytes);
    if (range->ascending ? order > 0 : order < 0) {
        range->behind = *id;
    }
}

bool cql_id_range_narrow(struct cql_id_range *range)
{
    if (range->bits == 0) {
        return false;
    }
    range->bits = range->bits == ID_BITS        ? FIRST_BITS
                  : range->bits < NARROWER_BITS ? 0
                                                : range->bits - NARROWER_BITS;
    set_limit(range);
    return true;
}

bool cql_id_range_next(struct cql_id_range *range)
{
    if (!range->bounded) {
        return false;
    }
    range->behind = range->to;
    range->bits = range->bits + WIDER_BITS < ID_BITS ? range->bits + WIDER_BITS : ID_BITS;
    set_limit(range);
    return true;
}
