/* The harness: one process that calls candidates or libraries on buffers it is sent, and sends back
 * what they did.
 *
 * Stream on stdin: struct wire_start, its libraries, then requests; on stdout: struct wire_hello,
 * then a reply to each request in order. While it times, it reports what batches took, and is told
 * how many calls the next one has. Little-endian, as every supported architecture;
 * tensorop/runners/protocol.py is the other end. Nothing here judges: the process that started this
 * one compares the outputs. */
#ifndef TENSOROP_HARNESS_H
#define TENSOROP_HARNESS_H

#include "call.h"

#include <stddef.h>
#include <stdint.h>

enum {
    WIRE_VERSION = 9,
    MAGIC_START = 0x53504f54,
    MAGIC_HELLO = 0x48504f54,
    MAGIC_REQUEST = 0x52504f54,
    MAGIC_REPLY = 0x41504f54,
    MAGIC_REPORT = 0x43504f54,
    MAGIC_COUNT = 0x4e504f54,
};

enum wire_state { STATE_JAILED = 1, STATE_PINNED = 2 };
enum wire_kind { KIND_CHECK = 0, KIND_TIME = 1, KIND_COUNT = 2 };
/* SCRATCH is a workspace: written freely, spoiled before each timed batch, never sent back. */
enum wire_access { ACCESS_IN = 0, ACCESS_OUT = 1, ACCESS_INOUT = 2, ACCESS_SCRATCH = 3 };

/* MIDDLE is for timing: aligned to a cache line, pages of its own, no byte flush with a guard. */
enum wire_placement { PLACE_END = 0, PLACE_START = 1, PLACE_MIDDLE = 2 };

enum wire_status {
    DONE = 0,
    SLACK_WRITTEN = 1,
    SIGNALLED = 2,
    NO_ENTRY = 3,
    NO_MEMORY = 4,
    TAMPERED = 5 /* the calls that were counted are not those that were to be made */
};
enum wire_fault {
    FAULT_ELSEWHERE = 0,
    FAULT_BEFORE = 1,
    FAULT_AFTER = 2,
    FAULT_READ_ONLY = 3,
    FAULT_HARNESS = 4 /* wrote into the harness's own state */
};

struct wire_start {
    uint32_t magic, version;
    uint64_t nonce;
    int32_t cpu;                        /* to pin to, -1: none */
    uint32_t needs, libraries, threads; /* needs: enum jail_need; threads: that a call may use */
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
    uint32_t keep; /* outputs are restored before each batch, and what it left comes back */
    uint32_t draw; /* the parent's: which operands a batch ends with, and how many calls it has */
    uint32_t dims, lds, scalars, flags; /* values that follow the entries, eight bytes each */
    uint64_t warm_ns, min_ns, max_ns, flush_bytes;
};

/* What to call: a candidate or library by number, with one flag slot replaced (-1: none). empty:
 * all but the function itself, one that returns at once in its place. */
struct wire_entry {
    uint32_t function;
    int32_t slot;
    int64_t value;
    uint32_t empty, reserved;
};

/* shift: 0, or the bytes by which every other call of a batch takes the operand further on.
 * step: 0, or the bytes from one line of `line` bytes to the next in memory; the stream has the
 * lines one behind the other, the last one maybe shorter. */
struct wire_buffer {
    uint32_t access, shift;
    uint64_t size, line, step;
};

struct wire_reply {
    uint32_t magic, index;
    uint64_t nonce;
    uint32_t status;
    int32_t signal, fault, buffer;
    int64_t offset; /* SLACK_WRITTEN and guard faults: bytes from the buffer's first byte; SIGSYS:
                       the system call */
    uint32_t outputs, entries, rounds;
    uint32_t rested; /* us spent before batches until other threads rested */
    uint64_t span;   /* ns from a timing's first batch to the end of its last */
    uint64_t spent;  /* ns that passed within its batches, timed or not */
    uint64_t apart;  /* of these, ns of calls that nobody is told of */
};

/* While timing: a batch of an entry that the parent judges; no calls: the entry's first batch is to
 * begin. Entry `entries`: all is done, and no answer is expected. */
struct wire_report {
    uint32_t magic, index;
    uint64_t nonce;
    uint32_t entry, reserved;
    uint64_t calls, ns;
};

/* The answer: how many calls the next batch has; settled: it is one whose time counts. */
struct wire_count {
    uint32_t magic, settled;
    uint64_t calls;
};

/* which: twice the entry, and 1 where the shifted operands were the last ones. */
struct wire_output {
    uint32_t slot, which;
    uint64_t size;
};

/* calls of a batch, and the ns they took together */
struct wire_sample {
    double calls, ns;
};

/* A buffer between two PROT_NONE pages. */
struct guarded {
    uint8_t *map; /* the first guard page */
    size_t map_size;
    uint8_t *pages; /* between the guards */
    size_t pages_size;
    uint8_t *data;
    size_t size;       /* of what the stream has */
    size_t line, step; /* lines that lie apart; one line where they do not */
    uint32_t access, shift;
    uint8_t *pristine; /* contents to restore, which can only be read, or NULL */
};

enum { ENTRY_LIMIT = 64, LIBRARY_LIMIT = 16, STATE_ALIGN = 65536 };

struct request {
    struct wire_request wire;
    struct wire_entry entry[ENTRY_LIMIT];
    struct guarded *buffer; /* what follows lies in the book */
    int64_t *dim, *ld, *flag, *own_flag;
    double *scalar;
    void **pointer;
    void *book;
    size_t book_size;
};

/* The clocks a batch is timed by, in ns. */
struct clocks {
    uint64_t wall, process, thread;
};

/* What a timed batch left, in pages of its own that can only be read: all outputs, one after the
 * other. */
struct left {
    struct left *next;
    size_t map_size;
    uint32_t which;
    uint8_t data[];
};

/* Everything that a call must not change. */
struct state {
    void *stack; /* the harness's own, while a callee has another; first, for the assembly */
    void *top;   /* of the callee's */
    uint64_t nonce, drawn, spent, apart, rested;
    unsigned threads; /* that a call may use */
    int in_fd, out_fd;
    struct clocks begin, late; /* of a batch; how much later the second reading may be */
    struct tensorop_call call[2];
    struct wire_sample *sample;
    size_t sample_size;
    struct left *left;
    const struct request *watched;
    struct request request;
    struct tensorop_bound bound[LIBRARY_LIMIT], empty[LIBRARY_LIMIT];
    uint8_t ahead[1 << 16];
    size_t ahead_at, ahead_end;
};

extern uint8_t tensorop_room[];

static inline struct state *state(void) {
    return (struct state *)(((uintptr_t)tensorop_room + STATE_ALIGN - 1) &
                            ~(uintptr_t)(STATE_ALIGN - 1));
}

/* harness_state.c */
void state_writable(int writable);
uint64_t state_draw(void);
void spoil(void *at, size_t size);
void spoil_below(void);
int apart_open(void); /* the callee's stack: 0, or -1 without memory */
void apart_spoil(void);

/* harness_call.c: reads a request's values, with room for its buffers; 0, or -1 without memory. */
int call_open(struct request *request);
struct tensorop_call call_of(const struct request *request, unsigned entry, int shifted);
void call_close(struct request *request);

/* harness_wire.c: the private ends of the pipes; both end the process when the parent is gone. */
void wire_open(void);
int wire_read(void *to, size_t size); /* 0, or -1 at the end of the stream */
void wire_write(const void *from, size_t size);

/* harness_memory.c */
int guarded_open(struct guarded *g, const struct wire_buffer *wire, uint32_t placement,
                 unsigned number);
int guarded_protect(struct guarded *g); /* read-only when it is an input */
/* The line that begins after `at` bytes of the stream, and its size; NULL behind the last. */
uint8_t *guarded_line(const struct guarded *g, size_t at, size_t *size);
int guarded_keep(struct guarded *g); /* remembers the contents, for guarded_restore */
void guarded_restore(struct guarded *g);
/* Other contents of the same numbers, where they are remembered: turned round by as many words as
 * the draw says, of very few zeros. */
void guarded_turn(struct guarded *g, uint64_t draw);
int guarded_touched(const struct guarded *g, int64_t *offset); /* 1 when the slack was written */
enum wire_fault guarded_fault(const struct guarded *g, const void *address, int64_t *offset);
void guarded_close(struct guarded *g);

/* harness_fault.c: a signal during a call becomes the last reply of this process. */
int fault_install(void);
void fault_watch(const struct request *request);

/* harness_jail.c: what is left while libraries are loaded, and while candidates are called; 0 when
 * the jail is closed. */
void confine_loading(unsigned needs);
int confine_calls(unsigned needs);

/* harness_entry.c */
int entry_bind(unsigned number, const char *const text[5], char *error, size_t error_size);
int entry_known(unsigned number);
typedef void (*entry_way)(unsigned number, const struct tensorop_call *call);
void entry_call(unsigned number, const struct tensorop_call *call);
void entry_call_empty(unsigned number, const struct tensorop_call *call);
void tensorop_apart(entry_way way, unsigned number, const struct tensorop_call *call, void *top);

/* harness_left.c: every output of an entry that differs from those known is remembered. 0, or -1
 * without memory. */
size_t outputs_size(const struct request *request);
int left_add(const struct request *request, unsigned entry, unsigned shifted);
void left_forget(void);

/* harness_time.c: fills the state's samples, entry by entry, and its `left` where outputs are kept;
 * returns a status and the rounds done. */
enum wire_status time_entries(const struct request *request, struct wire_reply *reply);
void count_entries(const struct request *request);

#endif
