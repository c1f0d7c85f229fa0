/* Reads the plan; a worker process executes its steps. Appends a line to the results for each step.
 * This process never uses the device, so a kernel that faults or hangs ends only a worker. */
#define _GNU_SOURCE
#include "kit.h"
#include "settings.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 1 << 17 };

struct settings settings = {2048.0 * 2048 * 2048, 180e6, 2000, 400, 9, 300};
static struct kit_about about = {"", "", "", 0};
static char **steps;

static void read_plan(const char *path) {
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t room = 0;
    if (!file || getline(&text, &room, file) < 0 || strcmp(text, "tensorop-device-kit 1\n") != 0)
        kit_die("the plan cannot be read or has another version; unpack the kit again");
    while (getline(&text, &room, file) > 0) {
        char *value = strchr(text, ' ');
        text[strcspn(text, "\n")] = 0;
        if (value)
            *value++ = 0;
        if (!value)
            kit_die("the plan is damaged; unpack the kit again");
        if (!strcmp(text, "kit"))
            about.kit = strdup(value);
        else if (!strcmp(text, "product"))
            about.product = strdup(value);
        else if (!strcmp(text, "platform"))
            about.platform = strdup(value);
        else if (!strcmp(text, "settings"))
            sscanf(value, "%lf %lf %lf %lf %d %d %d", &settings.every, &settings.l2,
                   &settings.graph_us, &settings.heat_ms, &settings.rounds, &settings.seconds,
                   &settings.calls);
        else {
            value[-1] = ' ';
            steps = realloc(steps, sizeof *steps * (about.steps + 1));
            steps[about.steps++] = strdup(text);
        }
    }
    free(text), fclose(file);
}

struct child {
    pid_t pid;
    int from;
    char text[LINE];
    size_t held;
};

static void start(struct child *of, unsigned first) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) || (of->pid = fork()) < 0)
        kit_die("a process cannot be started");
    if (of->pid == 0) {
        signal(SIGPIPE, SIG_DFL);
        worker(steps, about.steps, first, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    of->from = ends[0], of->held = 0;
}

/* Ends a worker and returns its status. */
static int finish(struct child *of) {
    int status = 0;
    kill(of->pid, SIGKILL);
    waitpid(of->pid, &status, 0);
    close(of->from);
    return status;
}

/* The worker's next line, or NULL. late: the worker exceeded the time limit. */
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

/* Describes a step whose worker ended without a line. */
static void add_lost(const char *step, bool late, int status) {
    char kind[16] = "";
    int number = 0;
    sscanf(step, "%15s", kind);
    row_add("\"kind\":\"%s\",\"of\":{", kind);
    if (!strcmp(kind, "time"))
        add_timed(step);
    else if (sscanf(step, "%*s %d", &number) == 1)
        row_add("\"%s\":%d", strcmp(kind, "verify") != 0 ? "control" : "variant", number);
    row_add("},\"outcome\":\"%s\",\"message\":\"the process ended with status %d\"",
            late ? "timeout" : "crash", status);
}

int main(int words, char **word) {
    static struct child of;
    bool late, there = false;
    signal(SIGPIPE, SIG_IGN);
    if (words != 3)
        kit_die("expected: kit PLAN RESULTS");
    read_plan(word[1]);
    const unsigned done = rows_open(word[2], &about);
    for (unsigned i = done; i < about.steps; i++) {
        if (!there) {
            start(&of, i);
            const char *machine = next(&of, &late);
            if (!machine) {
                finish(&of);
                kit_die("nothing is measured on this machine");
            }
            if (i == done) {
                struct utsname name;
                uname(&name);
                rows_begin(&about, done);
                row_add("\"kernel\":\"%s\",\"cores\":%ld,%s}", name.release,
                        sysconf(_SC_NPROCESSORS_ONLN), machine);
                row_end();
            }
            there = true;
        }
        const char *told = next(&of, &late);
        row_add("{\"step\":%u,", i);
        if (told)
            row_add("%s", told);
        else
            there = false, add_lost(steps[i], late, finish(&of));
        const char *row = row_so_far();
        const bool good = strstr(row, "\"outcome\":\"ok\"") != NULL,
                   broken = strncmp(steps[i], "control", 7) == 0;
        const bool counts =
            strncmp(steps[i], "time", 4) != 0 || strstr(row, "\"outcome\":\"wrong-result\"");
        fprintf(stderr, "%u of %u  %.60s: %s\n", i + 1, about.steps, steps[i], good ? "ok" : row);
        if (!good && broken)
            kit_die("the judge does not work on this machine: the control above ended wrongly; "
                    "nothing is measured. Report it to the maintainers of tensorop");
        row_add(","), row_date(), row_end();
        if (!good && counts) {
            rows_finish(i + 1, true);
            if (there)
                finish(&of);
            return 1;
        }
    }
    if (there)
        finish(&of);
    rows_finish(about.steps, false);
    return 0;
}
