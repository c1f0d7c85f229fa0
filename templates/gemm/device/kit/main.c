/* Reads the plan, has a worker do its steps, and appends a line to the results for each: with date
 * and checksum, synced. A file that has steps is gone on with; a line that was cut off is taken
 * away first. This process never touches the device, so that a kernel that faults or hangs ends a
 * worker alone. */
#define _GNU_SOURCE
#include "kit.h"
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 1 << 17, SCHEMA = 1 };

struct settings settings = {2048.0 * 2048 * 2048, 180e6, 2000, 400, 9, 300};
static char *kit = "", *product = "", *platform = "", **steps;
static int count;
static char row[LINE];
static size_t used;

static void die(const char *why) {
    fprintf(stderr, "kit: %s\n", why);
    exit(2);
}

static void read_plan(const char *path) {
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t room = 0;
    if (!file || getline(&text, &room, file) < 0 || strcmp(text, "tensorop-device-kit 1\n") != 0)
        die("the plan cannot be read or is of another version; unpack the kit again");
    while (getline(&text, &room, file) > 0) {
        char *value = strchr(text, ' ');
        text[strcspn(text, "\n")] = 0;
        if (value)
            *value++ = 0;
        if (!value)
            die("the plan is damaged; unpack the kit again");
        if (!strcmp(text, "kit"))
            kit = strdup(value);
        else if (!strcmp(text, "product"))
            product = strdup(value);
        else if (!strcmp(text, "platform"))
            platform = strdup(value);
        else if (!strcmp(text, "settings"))
            sscanf(value, "%lf %lf %lf %lf %d %d", &settings.every, &settings.l2,
                   &settings.graph_us, &settings.heat_ms, &settings.rounds, &settings.seconds);
        else {
            value[-1] = ' ';
            steps = realloc(steps, sizeof *steps * (size_t)(count + 1));
            steps[count++] = strdup(text);
        }
    }
    free(text), fclose(file);
}

static void add(const char *form, ...) {
    va_list rest;
    va_start(rest, form);
    const int n = vsnprintf(row + used, LINE - used, form, rest);
    va_end(rest);
    if (n < 0 || used + (size_t)n + 64 > LINE)
        die("a row is too long");
    used += (size_t)n;
}

static void add_date(void) {
    char date[32];
    const time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    add("\"date\":\"%s\"", date);
}

/* The row in one write, with FNV-1a of it, then on the disk. */
static void flush_row(int fd) {
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < used; i++)
        sum = (sum ^ (uint8_t)row[i]) * 0x100000001b3u;
    used += (size_t)snprintf(row + used, LINE - used, ",\"sum\":\"%016llx\"}\n",
                             (unsigned long long)sum);
    if (write(fd, row, used) != (ssize_t)used || fsync(fd))
        die("the results cannot be written: is the disk full?");
    used = 0;
}

/* The steps that a file of results has, after what was cut off is away; -1: of another kit. */
static int resume(int fd) {
    struct stat about;
    char want[128];
    int done = 0;
    off_t whole = 0;
    if (fstat(fd, &about))
        return -1;
    char *text = calloc(1, (size_t)about.st_size + 1);
    if (!text || pread(fd, text, (size_t)about.st_size, 0) != about.st_size)
        return -1;
    snprintf(want, sizeof want, "\"kit\":\"%s\"", kit);
    for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
        *end = 0;
        if (at == text && !strstr(at, want))
            done = -1;
        if (done >= 0)
            done += !strncmp(at, "{\"step\":", 8);
        if (done >= 0 &&
            !strncmp(at, "{\"end\":", 7)) /* also where it ended early: nothing changes that */
            done = count;
        whole = end + 1 - text;
    }
    free(text);
    if (done >= 0 && (ftruncate(fd, whole) || lseek(fd, whole, SEEK_SET) < 0))
        return -1;
    return done;
}

struct child {
    pid_t pid;
    int from;
    char text[LINE];
    size_t held;
};

static void start(struct child *of, int first) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) || (of->pid = fork()) < 0)
        die("no process can be started");
    if (of->pid == 0) {
        signal(SIGPIPE, SIG_DFL);
        worker(steps, count, first, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    of->from = ends[0], of->held = 0;
}

/* The status of a worker that has ended, or was made to. */
static int finish(struct child *of) {
    int status = 0;
    kill(of->pid, SIGKILL);
    waitpid(of->pid, &status, 0);
    close(of->from);
    return status;
}

/* Its next line, or NULL; late: whether it took too long. */
static const char *next(struct child *of, bool *late) {
    static char line[LINE];
    const time_t limit = time(NULL) + settings.seconds;
    *late = false;
    for (;;) {
        char *end = memchr(of->text, '\n', of->held);
        if (end) {
            const size_t size = (size_t)(end - of->text);
            memcpy(line, of->text, size), line[size] = 0;
            of->held -= size + 1;
            memmove(of->text, end + 1, of->held);
            return line;
        }
        struct pollfd waited = {.fd = of->from, .events = POLLIN};
        const time_t left = limit - time(NULL);
        if (left <= 0 || poll(&waited, 1, (int)left * 1000) == 0) {
            *late = true;
            return NULL;
        }
        const ssize_t got = read(of->from, of->text + of->held, LINE - of->held);
        if (got <= 0)
            return NULL;
        of->held += (size_t)got;
    }
}

static void head(int fd, int done, const char *machine) {
    struct stat about;
    struct utsname name;
    uname(&name);
    if (fstat(fd, &about) == 0 && about.st_size == 0)
        add("{\"schema\":%d,\"kit\":\"%s\",\"product\":\"%s\",\"platform\":\"%s\",\"steps\":%d,",
            SCHEMA, kit, product, platform, count);
    else
        add("{\"again\":%d,", done);
    add_date();
    add(",\"machine\":{\"kernel\":\"%s\",\"cores\":%ld,%s}", name.release,
        sysconf(_SC_NPROCESSORS_ONLN), machine);
    flush_row(fd);
}

static void write_end(int fd, int done) {
    add("{\"end\":%d,", done);
    add_date();
    flush_row(fd);
}

/* What a step is, where its worker could not say it. */
static void add_lost(const char *step, bool late, int status) {
    char kind[16] = "", dtype[8] = "";
    int v[6] = {0};
    sscanf(step, "%15s", kind);
    add("\"kind\":\"%s\",\"of\":{", kind);
    if (sscanf(step, "time %7s %d %d %d %d %d %d", dtype, v, v + 1, v + 2, v + 3, v + 4, v + 5) ==
        7)
        add("\"dtype\":\"%s\",\"a_along_m\":%d,\"b_along_k\":%d,\"m\":%d,\"n\":%d,\"k\":%d,"
            "\"batch\":%d",
            dtype, v[0], v[1], v[2], v[3], v[4], v[5]);
    else if (sscanf(step, "%*s %d", v) == 1)
        add("\"%s\":%d", strcmp(kind, "verify") != 0 ? "control" : "variant", v[0]);
    add("},\"outcome\":\"%s\",\"message\":\"the process ended with status %d\"",
        late ? "timeout" : "crash", status);
}

int main(int words, char **word) {
    static struct child of;
    bool late, there = false;
    signal(SIGPIPE, SIG_IGN);
    if (words != 3)
        die("expected: kit PLAN RESULTS");
    read_plan(word[1]);
    const int fd = open(word[2], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        fprintf(stderr, "kit: %s: %s; OUT=FILE gives another place\n", word[2], strerror(errno));
        return 2;
    }
    const int done = resume(fd);
    if (done < 0)
        die("the file of results is of another kit or cannot be read; move it away");
    if (done >= count) {
        fprintf(stderr, "kit: %s has all its rows\n", word[2]);
        return 0;
    }
    for (int i = done; i < count; i++) {
        if (!there) {
            start(&of, i);
            const char *machine = next(&of, &late);
            if (!machine) {
                finish(&of);
                die("nothing is measured on this machine");
            }
            if (i == done)
                head(fd, done, machine);
            there = true;
        }
        const char *told = next(&of, &late);
        add("{\"step\":%d,", i);
        if (told)
            add("%s", told);
        else
            there = false, add_lost(steps[i], late, finish(&of));
        const bool good = strstr(row, "\"outcome\":\"ok\"") != NULL,
                   broken = strncmp(steps[i], "control", 7) == 0;
        const bool counts =
            strncmp(steps[i], "time", 4) != 0 || strstr(row, "\"outcome\":\"wrong-result\"");
        fprintf(stderr, "%d of %d  %.60s: %s\n", i + 1, count, steps[i], good ? "ok" : row);
        if (!good && broken)
            die("the judge is broken on this machine: this control did not end as it must; nothing "
                "is measured");
        add(","), add_date();
        flush_row(fd);
        if (!good && counts) {
            fprintf(stderr, "kit: the library is wrong on this machine and must not be used on it; "
                            "import this file to have "
                            "it said in the product's folder\n");
            write_end(fd, i + 1);
            if (there)
                finish(&of);
            return 1;
        }
    }
    if (there)
        finish(&of);
    write_end(fd, count);
    return 0;
}
