/* A kit's file of results: a line for each step, a JSON object with date and checksum, written
 * in one piece and synced. A file with steps is continued, after an incomplete last line is
 * removed. */
#ifndef TENSOROP_KIT_ROWS_H
#define TENSOROP_KIT_ROWS_H

#include <stdbool.h>

/* The kit of a file of results. */
struct kit_about {
    const char *kit, *product, *platform;
    unsigned steps;
};

void kit_die(const char *why) __attribute__((noreturn)); /* with status 2 */

/* The current row. The first row_add has the opening brace; row_end adds the closing one. */
void row_add(const char *form, ...) __attribute__((format(printf, 1, 2)));
void row_text(const char *text); /* as a JSON string */
void row_date(void);
const char *row_so_far(void);
void row_clear(void);
void row_end(void); /* writes the row to the file */

/* The number of steps in the file; ends the process if it has all steps or is another kit's. */
unsigned rows_open(const char *path, const struct kit_about *about);
/* Begins the row of a run's start, up to the fields of its machine. */
void rows_begin(const struct kit_about *about, unsigned done);
/* Writes the last row. wrong: the library is wrong; the user gets a message. */
void rows_finish(unsigned steps, bool wrong);

#endif
