/* The harness: a process that receives buffers, calls candidates or libraries on them, and sends
 * back the results.
 *
 * Stream on stdin: struct wire_start, its libraries, then requests. On stdout: struct
 * wire_hello, then a reply to each request in order. While it times, it reports each batch and
 * receives the number of the next calls. Little-endian, as every supported architecture;
 * tensorop/runners/protocol.py is the other end. The harness judges nothing: its parent process
 * compares the outputs. */
#ifndef TENSOROP_HARNESS_H
#define TENSOROP_HARNESS_H

#include "call.h"

#include <stddef.h>
#include <stdint.h>

enum {
    WIRE_VERSION = 10,
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

/* MIDDLE is for timing: aligned to a cache line, in pages of its own, not adjacent to a guard.
 * FIXED: so too, at addresses that do not depend on earlier requests. */
enum wire_placement { PLACE_END = 0, PLACE_START = 1, PLACE_MIDDLE = 2, PLACE_FIXED = 3 };

enum wire_status {
    DONE = 0,
    SLACK_WRITTEN = 1,
    SIGNALLED = 2,
    NO_ENTRY = 3,
    NO_MEMORY = 4,
    TAMPERED = 5 /* the count of made calls is wrong */
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
    int32_t cpu;                        /* CPU to pin to; -1: none */
    uint32_t needs, libraries, threads; /* needs: enum jail_need; threads: limit of a call */
};

struct wire_hello {
    uint32_t magic, version;
    uint64_t nonce;
    uint32_t page, state;
    char error[256]; /* the reason if a library could not be bound, else empty */
};

struct wire_request {
    uint32_t magic, kind, index, placement;
    uint32_t buffers, entries, rounds, warm; /* warm: regions before the counted one */
    uint32_t keep;  /* restore outputs before each batch, and send its outputs back */
    uint32_t alone; /* a counted entry finds caches and predictors as at the start */
    uint32_t draw;  /* the parent's seed, for a batch's number of calls and its last operands */
    uint32_t dims, lds, scalars, flags; /* counts of the values after the entries, 8 bytes each */
    uint32_t reserved;
    uint64_t warm_ns, min_ns, max_ns, flush_bytes;
};

/* A function to call: a candidate or library by number, with one flag slot replaced (-1: none).
 * empty: with a function in its place that returns at once. */
struct wire_entry {
    uint32_t function;
    int32_t slot;
    int64_t value;
    uint32_t empty, reserved;
};

/* shift: 0, or the offset in bytes of the operand in every other call of a batch. step: 0, or
 * the bytes from one line of `line` bytes to the next in memory; in the stream, lines follow
 * each other, and the last one can be shorter. */
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
    uint32_t rested; /* us of waiting before batches until other threads were idle */
    uint64_t span;   /* ns from a timing's first batch to the end of its last */
    uint64_t spent;  /* ns within its batches, timed or not; of a count: path_made */
    uint64_t apart;  /* of these, ns of unreported calls */
};

/* While timing: the report of an entry's batch. No calls: before the entry's first batch. Entry
 * `entries`: the end; it gets no answer. */
struct wire_report {
    uint32_t magic, index;
    uint64_t nonce;
    uint32_t entry, reserved;
    uint64_t calls, ns;
};

/* The answer: the number of calls of the next batch; settled: its time counts. */
struct wire_count {
    uint32_t magic, settled;
    uint64_t calls;
};

/* which: twice the entry, plus 1 if the last call had the shifted operands. */
struct wire_output {
    uint32_t slot, which;
    uint64_t size;
};

/* the calls of a batch, and their time together */
struct wire_sample {
    double calls, ns;
};

/* A buffer between two PROT_NONE pages. */
struct guarded {
    uint8_t *map; /* the first guard page */
    size_t map_size;
    uint8_t *pages; /* the pages between the guards */
    size_t pages_size;
    uint8_t *data;
    size_t size;       /* of the operand in the stream */
    size_t line, step; /* of distant lines; else a single line */
    uint32_t access, shift;
    uint8_t *pristine; /* read-only contents to restore, or NULL */
};

enum { ENTRY_LIMIT = 64, LIBRARY_LIMIT = 16, STATE_ALIGN = 65536 };

struct request {
    struct wire_request wire;
    struct wire_entry entry[ENTRY_LIMIT];
    struct guarded *buffer; /* the following are in the book */
    int64_t *dim, *ld, *flag, *own_flag;
    double *scalar;
    void **pointer;
    void *book;
    size_t book_size;
};

/* The clocks of a batch, in ns. */
struct clocks {
    uint64_t wall, process, thread;
};

/* The outputs of a timed batch, one after the other, in read-only pages of their own. */
struct left {
    struct left *next;
    size_t map_size;
    uint32_t which;
    uint8_t data[];
};

/* Everything that a call must not change. */
struct state {
    void *stack; /* the harness's own stack pointer during a call; the assembly needs it first */
    void *top;   /* of the callee's stack */
    uint64_t nonce, drawn, spent, apart, rested;
    unsigned threads; /* limit of a call */
    int in_fd, out_fd;
    struct clocks begin, late; /* of a batch; the limit of the second reading's delay */
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

/* harness_call.c: reads a request's values, and allocates its buffers' records; 0, or -1 without
 * memory. */
int call_open(struct request *request);
struct tensorop_call call_of(const struct request *request, unsigned entry, int shifted);
void call_close(struct request *request);

/* harness_wire.c: the private ends of the pipes; both functions end the process if the parent is
 * gone. */
void wire_open(void);
int wire_read(void *to, size_t size); /* 0, or -1 at the end of the stream */
void wire_write(const void *from, size_t size);

/* harness_memory.c */
int guarded_open(struct guarded *g, const struct wire_buffer *wire, uint32_t placement,
                 unsigned number);
/* The requested address of buffer `number`, or of other memory beyond all buffers. */
enum { PLACE_OF_BOOK = 100, PLACE_OF_STACK };
void *guarded_place(unsigned number);
int guarded_protect(struct guarded *g); /* makes an input read-only */
/* The line that begins after `at` bytes of the stream, and its size; NULL behind the last. */
uint8_t *guarded_line(const struct guarded *g, size_t at, size_t *size);
int guarded_keep(struct guarded *g); /* keeps the contents for guarded_restore */
void guarded_restore(struct guarded *g);
/* Changes kept contents: rotates them by a number of words that depends on `draw`; very small
 * ones become zeros. */
void guarded_turn(struct guarded *g, uint64_t draw);
int guarded_touched(const struct guarded *g, int64_t *offset); /* 1 if the slack was written */
enum wire_fault guarded_fault(const struct guarded *g, const void *address, int64_t *offset);
void guarded_close(struct guarded *g);

/* harness_fault.c: a signal during a call becomes the last reply of this process. */
int fault_install(void);
void fault_watch(const struct request *request);

/* harness_jail.c: the rights while libraries are loaded, and while candidates are called; 0 if
 * the jail is closed. */
void confine_loading(unsigned needs);
int confine_calls(unsigned needs);

/* harness_entry.c */
int entry_bind(unsigned number, const char *const text[5], char *error, size_t error_size);
int entry_known(unsigned number);
/* The candidate itself, since data that entry_call reads has a place in modelled caches; NULL for
 * a library. */
tensorop_entry entry_itself(unsigned number);
typedef void (*entry_way)(unsigned number, const struct tensorop_call *call);
void entry_call(unsigned number, const struct tensorop_call *call);
void entry_call_empty(unsigned number, const struct tensorop_call *call);
void tensorop_apart(entry_way way, unsigned number, const struct tensorop_call *call, void *top);

/* harness_left.c: keeps every output of an entry that differs from the kept ones; 0, or -1
 * without memory. */
size_t outputs_size(const struct request *request);
int left_add(const struct request *request, unsigned entry, unsigned shifted);
void left_forget(void);

/* harness_time.c: fills the state's samples, entry by entry, and its `left` if outputs are kept;
 * returns a status and the number of rounds. */
enum wire_status time_entries(const struct request *request, struct wire_reply *reply);
void count_entries(const struct request *request);

/* harness_path.c, where the processor can step through a call (STEPS): its instructions before
 * the first access to an operand and after the last one; path_made has those of the last call.
 * path_signal: 1 if a signal belongs to the steps. */
#if defined(__x86_64__)
enum { STEPS = 1 };
#else
enum { STEPS = 0 };
#endif
void path_step(const struct request *request, entry_way way, unsigned number,
               const struct tensorop_call *call);
uint64_t path_made(void);
int path_signal(int number, const void *address);

#endif
