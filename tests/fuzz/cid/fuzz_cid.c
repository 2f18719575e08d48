/* fuzz_cid.c: CIDs and piece CIDs, text and binary. What is accepted survives a round trip. */
#include "base/check.h"
#include "cid/cid.h"
#include "cid/piece_cid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(const struct fgw_cid *cid)
{
    char text[FGW_CID_TEXT_SIZE];
    struct fgw_cid again;
    fgw_cid_text(cid, text);
    FGW_CHECK(fgw_cid_from_text(fgw_bytes_str(text), &again) == FGW_OK);
    FGW_CHECK(fgw_cid_eq(cid, &again));
}

static void piece_round_trip(const struct fgw_piece *piece)
{
    char text[FGW_PIECE_CID_V2_TEXT_SIZE];
    struct fgw_piece again;
    bool sized = false;
    fgw_piece_cid_v2_text(piece, text);
    FGW_CHECK(fgw_piece_cid_from_text(fgw_bytes_str(text), &again, &sized) == FGW_OK && sized);
    FGW_CHECK(again.height == piece->height && again.payload_bytes == piece->payload_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fgw_bytes input = fgw_bytes(data, size);
    struct fgw_cid_view view;
    struct fgw_cid cid;
    if (fgw_cid_decode(input, &view) == FGW_OK) {
        FGW_CHECK(view.encoded.len <= size && view.encoded.len <= FGW_CID_ENCODED_MAX);
        if (fgw_cid_from_view(&view, &cid) == FGW_OK) {
            round_trip(&cid);
        }
    }
    if (fgw_cid_from_text(input, &cid) == FGW_OK) {
        round_trip(&cid);
    }
    struct fgw_piece piece;
    bool sized = false;
    if (fgw_piece_cid_from_text(input, &piece, &sized) == FGW_OK && sized) {
        piece_round_trip(&piece);
    }
    return 0;
}
