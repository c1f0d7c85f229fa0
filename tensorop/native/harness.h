/* The harness: one process that calls candidates or libraries on buffers it is sent, and sends back
 * what they did.
 *
 * Stream on stdin: struct wire_start, its libraries, then requests; on stdout: struct wire_hello,
 * then a reply to each request in order. Little-endian, as every supported architecture;
 * tensorop/runners/protocol.py is the other end. Nothing here judges: the process that started this
 * one compares the outputs. */
#ifndef TENSOROP_HARNESS_H
#define TENSOROP_HARNESS_H

#include "call.h"

#include <stddef.h>
#include <stdint.h>

enum {
    WIRE_VERSION = 1,
    MAGIC_START = 0x53504f54,
    MAGIC_HELLO = 0x48504f54,
    MAGIC_REQUEST = 0x52504f54,
    MAGIC_REPLY = 0x41504f54,
};

enum wire_option { OPTION_SANDBOX = 1 };
enum wire_state { STATE_SANDBOXED = 1, STATE_PINNED = 2 };
enum wire_kind { KIND_CHECK = 0, KIND_TIME = 1, KIND_COUNT = 2 };
enum wire_access { ACCESS_IN = 0, ACCESS_OUT = 1, ACCESS_INOUT = 2 };

/* MIDDLE is for timing: aligned to a cache line, pages of its own, no byte flush with a guard. */
enum wire_placement { PLACE_END = 0, PLACE_START = 1, PLACE_MIDDLE = 2 };

enum wire_status { DONE = 0, SLACK_WRITTEN = 1, SIGNALLED = 2, NO_ENTRY = 3, NO_MEMORY = 4 };
enum wire_fault { FAULT_ELSEWHERE = 0, FAULT_BEFORE = 1, FAULT_AFTER = 2, FAULT_READ_ONLY = 3 };

struct wire_start {
    uint32_t magic, version;
    uint64_t nonce;
    int32_t cpu; /* to pin to, -1: none */
    uint32_t options, libraries, reserved;
};

struct wire_hello {
    uint32_t magic, version;
    uint64_t nonce;
    uint32_t page, state;
    char error[256]; /* why a library could not be bound; empty when all went well */
};

struct wire_request {
    uint32_t magic, kind, index, placement;
    uint32_t buffers, entries, rounds, warm; /* warm: regions before the counted one */
    uint64_t warm_ns, min_ns, max_ns, flush_bytes;
    struct tensorop_call call; /* its buffer pointers are ignored */
};

/* What to call: a candidate or library by number, with one flag slot replaced (-1: none). */
struct wire_entry {
    uint32_t function;
    int32_t slot;
    int64_t value;
};

struct wire_buffer {
    uint32_t access, reserved;
    uint64_t size;
};

struct wire_reply {
    uint32_t magic, index;
    uint64_t nonce;
    uint32_t status;
    int32_t signal, fault, buffer;
    int64_t offset; /* SLACK_WRITTEN and guard faults: bytes from the buffer's first byte; SIGSYS:
                       the system call */
    uint32_t outputs, entries, rounds, reserved;
};

struct wire_output {
    uint32_t slot, reserved;
    uint64_t size;
};

/* A buffer between two PROT_NONE pages. */
struct guarded {
    uint8_t *map; /* the first guard page */
    size_t map_size;
    uint8_t *pages; /* between the guards */
    size_t pages_size;
    uint8_t *data;
    size_t size;
    uint32_t access;
    uint8_t *pristine; /* contents to restore, or NULL */
};

struct request {
    struct wire_request wire;
    struct wire_entry *entry;
    struct guarded buffer[TENSOROP_BUFFERS];
};

/* harness_wire.c: the private ends of the pipes; both end the process when the parent is gone. */
void wire_open(void);
int wire_read(void *to, size_t size); /* 0, or -1 at the end of the stream */
void wire_write(const void *from, size_t size);

/* harness_memory.c */
int guarded_open(struct guarded *g, uint32_t access, size_t size, uint32_t placement,
                 unsigned number);
int guarded_protect(struct guarded *g); /* read-only when it is an input */
int guarded_keep(struct guarded *g);    /* remembers the contents of an in-out buffer */
void guarded_restore(struct guarded *g);
int guarded_touched(const struct guarded *g, int64_t *offset); /* 1 when the slack was written */
enum wire_fault guarded_fault(const struct guarded *g, const void *address, int64_t *offset);
void guarded_close(struct guarded *g);

/* harness_fault.c: a signal during a call becomes the last reply of this process. */
void fault_install(void);
void fault_watch(const struct request *request, uint64_t nonce);

/* harness_sandbox.c: 0 when only the system calls of a computation are left, else -1. */
int sandbox_enter(void);

/* harness_entry.c */
int entry_bind(unsigned number, const char *const text[5], char *error, size_t error_size);
int entry_known(unsigned number);
void entry_call(unsigned number, const struct tensorop_call *call);

/* harness_time.c: samples in ns a call, entry by entry; returns the rounds done, 0 without memory.
 */
uint32_t time_entries(const struct request *request, double *samples);
void count_entries(const struct request *request);

#endif
