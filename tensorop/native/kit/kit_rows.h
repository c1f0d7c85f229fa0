/* A kit's file of results. Each step has one line: a JSON object with date and checksum, written
 * with one call and synced. A file that already has steps is continued after its incomplete last
 * line, if any, is removed. */
#ifndef TENSOROP_KIT_ROWS_H
#define TENSOROP_KIT_ROWS_H

#include <stdbool.h>

/* The kit of a file of results. */
struct kit_about {
    const char *kit, *product, *platform;
    unsigned steps;
};

void kit_die(const char *why) __attribute__((noreturn)); /* ends the process with status 2 */

/* The current row. The first row_add has the opening brace; row_end adds the closing one. */
void row_add(const char *form, ...) __attribute__((format(printf, 1, 2)));
void row_text(const char *text); /* as a JSON string */
void row_date(void);
const char *row_so_far(void);
void row_clear(void);
void row_end(void); /* writes the row to the file */

/* The number of steps in the file. Ends the process if the file is complete or is another kit's. */
unsigned rows_open(const char *path, const struct kit_about *about);
/* Begins the first row of a run, up to the fields of the machine. */
void rows_begin(const struct kit_about *about, unsigned done);
/* Writes the last row. wrong: the library computes wrong results, which the user is told. */
void rows_finish(unsigned steps, bool wrong);

#endif
