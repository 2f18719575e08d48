/* car.h: CARv1 files: header, sections, and a bounded incremental reader.
 *
 * Bytes: docs/formats/car.md; source: ipld specs/transport/car/carv1. Writers use the _encode
 * functions; a walker over a file at hand uses fgw_car_section_decode; the reader takes a stream in
 * pieces of any size, verifies every block against its CID and never holds more than one section.
 * A reader belongs to one thread; views it hands out live until its next call.
 */
#ifndef FGW_CID_CAR_H
#define FGW_CID_CAR_H

#include "cid/cid.h"

enum {
    FGW_CAR_HEADER_SIZE = 59,            /* with one root of FGW_CID_SIZE, length varint included */
    FGW_CAR_BLOCK_MAX = 2 * 1024 * 1024, /* Bitswap's and the trustless gateway's limit */
    FGW_CAR_HEADER_MAX = 32 * 1024,      /* some 750 roots */
    FGW_CAR_SECTION_HEAD_MAX = 40,       /* 4 bytes of varint, CID */
    FGW_CAR_SECTION_MAX = FGW_CAR_BLOCK_MAX + FGW_CID_ENCODED_MAX
};

/* The root of a group file, which has none: raw, identity hash of 32 zero bytes. It is as long as a
 * real root, and a CAR needs no block for an identity CID. */
struct fgw_cid fgw_car_placeholder_root(void);
/* The whole header, length varint first. */
void fgw_car_header_encode(const struct fgw_cid *root, uint8_t out[FGW_CAR_HEADER_SIZE]);
/* What stands before a block of block_size <= FGW_CAR_BLOCK_MAX bytes; returns its length. */
size_t fgw_car_section_head_encode(const struct fgw_cid *cid, size_t block_size,
                                   uint8_t out[FGW_CAR_SECTION_HEAD_MAX]);
/* Bytes a section takes, head included. */
size_t fgw_car_section_size(size_t block_size);

struct fgw_car_header {
    size_t root_count;
    struct fgw_bytes roots; /* for fgw_car_next_root */
};

/* The header without its length varint. FGW_ERR_CORRUPT when it is not dag-cbor of the map {roots,
 * version: 1}, FGW_ERR_NOT_IMPLEMENTED for another version (a CARv2's pragma is such a header). */
enum fgw_err fgw_car_header_decode(struct fgw_bytes cbor,
                                   struct fgw_car_header *out_header) FGW_MUST_CHECK;
/* Takes the next root off header.roots: FGW_ERR_END behind the last one. */
enum fgw_err fgw_car_next_root(struct fgw_bytes *roots,
                               struct fgw_cid_view *out_root) FGW_MUST_CHECK;

struct fgw_car_section {
    size_t head_size;  /* varint and CID */
    size_t block_size; /* the section takes head_size + block_size bytes */
    struct fgw_cid_view cid;
};

/* The head of the section at the front of `bytes`; the block itself need not be there and is not
 * looked at. FGW_ERR_END when the head is cut off, FGW_ERR_CORRUPT when it is none (length zero
 * too), FGW_ERR_TOO_LARGE above FGW_CAR_BLOCK_MAX. */
enum fgw_err fgw_car_section_decode(struct fgw_bytes bytes,
                                    struct fgw_car_section *out_section) FGW_MUST_CHECK;

struct fgw_car_reader_options {
    bool zero_length_ends; /* a section of length zero ends the file (padded pieces) */
    bool skip_verify;      /* the caller checks the blocks itself */
};

enum fgw_car_item_kind { FGW_CAR_ITEM_HEADER, FGW_CAR_ITEM_BLOCK };

struct fgw_car_item {
    enum fgw_car_item_kind kind;
    uint64_t offset;              /* of the length varint, from the first byte fed */
    struct fgw_car_header header; /* FGW_CAR_ITEM_HEADER */
    struct fgw_cid_view cid;      /* FGW_CAR_ITEM_BLOCK */
    struct fgw_bytes block;
};

struct fgw_car_reader {
    struct fgw_car_reader_options options;
    uint64_t offset;        /* of the unit being read */
    struct fgw_buf partial; /* a unit that came in pieces */
    bool partial_used;      /* it was handed out by the last call */
    bool header_seen;
    enum fgw_err stop; /* FGW_ERR_END or the failure; answered from then on */
};

/* options may be NULL: all false. */
void fgw_car_reader_init(struct fgw_car_reader *reader,
                         const struct fgw_car_reader_options *options);
void fgw_car_reader_deinit(struct fgw_car_reader *reader);
/* Takes bytes off the front of *input up to the end of the next item. FGW_OK: out_item is set.
 * FGW_ERR_AGAIN: all input is used, feed more. FGW_ERR_END: the zero-length end mark was met, what
 * follows is not read. FGW_ERR_CORRUPT, _TOO_LARGE, _NOT_IMPLEMENTED (version, hash): the file is
 * refused for good; reader.offset says where. */
enum fgw_err fgw_car_reader_next(struct fgw_car_reader *reader, struct fgw_bytes *input,
                                 struct fgw_car_item *out_item) FGW_MUST_CHECK;
/* At the end of the stream: FGW_OK between two sections, FGW_ERR_CORRUPT inside one or when there
 * was no header, the failure if there was one. */
enum fgw_err fgw_car_reader_finish(const struct fgw_car_reader *reader) FGW_MUST_CHECK;

#endif
