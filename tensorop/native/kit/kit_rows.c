#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "kit_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 1 << 17, SCHEMA = 1, TAIL = 64 };

static char row[LINE];
static size_t used;
static int results = -1;

void kit_die(const char *why) {
    fprintf(stderr, "kit: %s\n", why);
    exit(2);
}

void row_add(const char *form, ...) {
    va_list rest;
    va_start(rest, form);
    const int n = vsnprintf(row + used, LINE - used, form, rest);
    va_end(rest);
    if (n < 0 || used + (size_t)n + TAIL > LINE)
        kit_die("a row is too long");
    used += (size_t)n;
}

void row_text(const char *text) {
    row_add("\"");
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        row_add(c < ' ' || c > '~' || c == '"' || c == '\\' ? "\\u%04x" : "%c", c);
    }
    row_add("\"");
}

void row_date(void) {
    char date[32];
    const time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    row_add("\"date\":\"%s\"", date);
}

const char *row_so_far(void) { return row; }

void row_clear(void) { row[used = 0] = 0; }

/* Adds an FNV-1a checksum, to detect a row that was cut off or damaged. */
void row_end(void) {
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < used; i++)
        sum = (sum ^ (uint8_t)row[i]) * 0x100000001b3u;
    used += (size_t)snprintf(row + used, LINE - used, ",\"sum\":\"%016llx\"}\n",
                             (unsigned long long)sum);
    if (write(results, row, used) != (ssize_t)used || fsync(results))
        kit_die("the results cannot be written: is the disk full?");
    row_clear();
}

/* The number of steps in the file, after an incomplete last line is removed; -1 for another
 * kit's file. */
static long resume(const struct kit_about *about) {
    struct stat now;
    char want[128];
    long steps = 0;
    off_t whole = 0;
    if (fstat(results, &now))
        return -1;
    char *text = calloc(1, (size_t)now.st_size + 1);
    if (!text || pread(results, text, (size_t)now.st_size, 0) != now.st_size)
        return -1;
    snprintf(want, sizeof want, "\"kit\":\"%s\"", about->kit);
    for (char *at = text, *end; steps >= 0 && (end = strchr(at, '\n')); at = end + 1) {
        *end = 0;
        if (at == text && !strstr(at, want))
            steps = -1;
        else if (!strncmp(at, "{\"end\":", 7)) /* also after an early end, which is final */
            steps = about->steps;
        else
            steps += !strncmp(at, "{\"step\":", 8);
        whole = end + 1 - text;
    }
    free(text);
    if (steps >= 0 && (ftruncate(results, whole) || lseek(results, whole, SEEK_SET) < 0))
        return -1;
    return steps;
}

unsigned rows_open(const char *path, const struct kit_about *about) {
    results = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (results < 0) {
        fprintf(stderr, "kit: %s: %s; choose another file with TENSOROP_KIT_OUT=FILE\n", path,
                strerror(errno));
        exit(2);
    }
    const long done = resume(about);
    if (done < 0) {
        fprintf(stderr,
                "kit: %s cannot be written, or belongs to another kit; move it or choose another "
                "file with TENSOROP_KIT_OUT=FILE\n",
                path);
        exit(2);
    }
    if (done >= (long)about->steps) {
        fprintf(stderr, "kit: %s has all its rows\n", path);
        exit(0);
    }
    return (unsigned)done;
}

void rows_begin(const struct kit_about *about, unsigned done) {
    struct stat now;
    if (fstat(results, &now) == 0 && now.st_size == 0)
        row_add("{\"schema\":%d,\"kit\":\"%s\",\"product\":\"%s\",\"platform\":\"%s\",\"steps\":%u",
                SCHEMA, about->kit, about->product, about->platform, about->steps);
    else
        row_add("{\"again\":%u", done);
    row_add(","), row_date(), row_add(",\"machine\":{");
}

void rows_finish(unsigned steps, bool wrong) {
    if (wrong)
        fprintf(stderr,
                "kit: the library computes wrong results on this machine; do not use it here. "
                "Import this file to record it in the product's folder\n");
    row_add("{\"end\":%u,", steps), row_date(), row_end();
}
