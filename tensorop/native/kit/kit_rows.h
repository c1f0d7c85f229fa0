/* The file of results of a kit, whatever it measures: a line for each step, a JSON object with date
 * and checksum, written at once and synced. A file that has steps is gone on with; a line that was
 * cut off is taken away first. */
#ifndef TENSOROP_KIT_ROWS_H
#define TENSOROP_KIT_ROWS_H

#include <stdbool.h>

/* What a result is of. */
struct kit_about {
    const char *kit, *product, *platform;
    unsigned steps;
};

void kit_die(const char *why) __attribute__((noreturn)); /* with status 2 */

/* The row that is being made; its first words bring the brace, `row_end` the last. */
void row_add(const char *form, ...) __attribute__((format(printf, 1, 2)));
void row_text(const char *text); /* as a JSON string */
void row_date(void);
const char *row_so_far(void);
void row_clear(void);
void row_end(void); /* into the file */

/* The steps that the file has; ends the process where it has all, or is of another kit. */
unsigned rows_open(const char *path, const struct kit_about *about);
/* Begins the row that says where a run begins, up to the members of its machine. */
void rows_begin(const struct kit_about *about, unsigned done);
/* The last row. wrong: the library is, which the user is told. */
void rows_finish(unsigned steps, bool wrong);

#endif
