/* row_identity.c: rows of users and access keys. See row.h. */
#include "meta/row_internal.h"

enum user_tag { USER_CANONICAL_ID = 2, USER_DISPLAY = 4, USER_EMAIL = 6, USER_POLICY = 8,
                USER_CREATED = 10 };
enum key_tag { KEY_SECRET = 2, KEY_USER = 4, KEY_DISABLED = 6, KEY_CREATED = 8 };

void fgw_row_encode_user(struct fgw_buf *out, const struct fgw_user *user)
{
    fgw_tlv_put(out, USER_CANONICAL_ID, user->canonical_id);
    fgw_tlv_put_nonempty(out, USER_DISPLAY, user->display_name);
    fgw_tlv_put_nonempty(out, USER_EMAIL, user->email);
    fgw_tlv_put_u64(out, USER_POLICY, user->policy);
    fgw_tlv_put_u64(out, USER_CREATED, (uint64_t)user->created_ms);
}

enum fgw_err fgw_row_decode_user(struct fgw_arena *arena, struct fgw_bytes name, struct fgw_bytes row,
                                 struct fgw_user *out_user)
{
    (void)arena;
    struct fgw_user user = {.name = name};
    struct fgw_tlv_reader reader = fgw_tlv_reader(row);
    struct fgw_tlv_item item;
    uint64_t number;
    enum fgw_err err;
    while ((err = fgw_tlv_next(&reader, &item)) == FGW_OK) {
        if (item.tag == USER_CANONICAL_ID) {
            user.canonical_id = item.value;
        } else if (item.tag == USER_DISPLAY) {
            user.display_name = item.value;
        } else if (item.tag == USER_EMAIL) {
            user.email = item.value;
        } else if (item.tag == USER_POLICY && fgw_tlv_u64(item.value, &number) == FGW_OK) {
            user.policy = (enum fgw_policy_kind)number;
        } else if (item.tag == USER_CREATED && fgw_tlv_u64(item.value, &number) == FGW_OK) {
            user.created_ms = (int64_t)number;
        } else if (fgw_tlv_critical(item.tag)) {
            return FGW_ERR_NEWER_VERSION;
        }
    }
    if (err != FGW_ERR_END) {
        return err;
    }
    *out_user = user;
    return FGW_OK;
}

void fgw_row_encode_access_key(struct fgw_buf *out, const struct fgw_access_key *key)
{
    fgw_tlv_put(out, KEY_SECRET, key->secret_key);
    fgw_tlv_put(out, KEY_USER, key->user_name);
    fgw_tlv_put_u64(out, KEY_DISABLED, key->disabled);
    fgw_tlv_put_u64(out, KEY_CREATED, (uint64_t)key->created_ms);
}

enum fgw_err fgw_row_decode_access_key(struct fgw_arena *arena, struct fgw_bytes access_key,
                                       struct fgw_bytes row, struct fgw_access_key *out_key)
{
    (void)arena;
    struct fgw_access_key key = {.access_key = access_key};
    struct fgw_tlv_reader reader = fgw_tlv_reader(row);
    struct fgw_tlv_item item;
    uint64_t number;
    enum fgw_err err;
    while ((err = fgw_tlv_next(&reader, &item)) == FGW_OK) {
        if (item.tag == KEY_SECRET) {
            key.secret_key = item.value;
        } else if (item.tag == KEY_USER) {
            key.user_name = item.value;
        } else if (item.tag == KEY_DISABLED && fgw_tlv_u64(item.value, &number) == FGW_OK) {
            key.disabled = number != 0;
        } else if (item.tag == KEY_CREATED && fgw_tlv_u64(item.value, &number) == FGW_OK) {
            key.created_ms = (int64_t)number;
        } else if (fgw_tlv_critical(item.tag)) {
            return FGW_ERR_NEWER_VERSION;
        }
    }
    if (err != FGW_ERR_END) {
        return err;
    }
    *out_key = key;
    return FGW_OK;
}
