/* A slippery 4 x 3 grid with a hole and an exit, as a program that speaks gosprl's line protocol (docs/protocol.md).
 *
 *     cc -O2 -o grid grid.c
 *     gosprl collect --process ./grid --need 20 --seed 0
 *
 * Observations are [column, row]. Actions: 0 left, 1 right, 2 up, 3 down; one move in ten goes up instead. The exit
 * (3, 0) and the hole (1, 1) end an episode. An optional argument names a file for a log of all steps.
 *
 * A request is looked at just enough to find what is needed of it; a program with more to read would use a JSON library.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 4, ROWS = 3 };

static uint64_t noise = 1;
static int column, row;

/* A number in [0, 1): xorshift, enough for a toy. */
static double uniform(void) {
    noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17;
    return (double)(noise >> 11) / 9007199254740992.0;
}

/* The whole number after "name": in a line, or `otherwise`. */
static long field(const char *line, const char *name, long otherwise) {
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    const char *at = strstr(line, quoted);
    return at ? strtol(at + strlen(quoted), NULL, 10) : otherwise;
}

static int inside(int value, int size) { return value < 0 ? 0 : value >= size ? size - 1 : value; }

static void move(long action) {
    if (uniform() < 0.1) action = 2;
    column = inside(column + (action == 1) - (action == 0), COLUMNS);
    row = inside(row + (action == 3) - (action == 2), ROWS);
}

int main(int argc, char **argv) {
    char line[4096];
    FILE *log = argc > 1 ? fopen(argv[1], "w") : NULL;
    while (fgets(line, sizeof line, stdin)) {
        long id = field(line, "id", 0);
        if (strstr(line, "\"type\":\"hello\"")) {
            printf("{\"type\":\"hello\",\"protocol\":1,\"actions\":4,\"id\":%ld}\n", id);
        } else if (strstr(line, "\"type\":\"reset\"")) {
            long seed = field(line, "seed", -1);
            if (seed >= 0) noise = 88172645463325252ULL ^ ((uint64_t)seed * 2654435761ULL);
            column = 0, row = ROWS - 1;
            printf("{\"observation\":[%d,%d],\"id\":%ld}\n", column, row, id);
        } else if (strstr(line, "\"type\":\"step\"")) {
            long action = field(line, "action", -1);
            int from_column = column, from_row = row;
            move(action);
            int exits = column == 3 && row == 0, falls = column == 1 && row == 1;
            printf("{\"observation\":[%d,%d],\"reward\":%d,\"terminated\":%s,\"id\":%ld}\n", column, row, exits,
                   exits || falls ? "true" : "false", id);
            if (log) fprintf(log, "%d,%d %ld %d,%d\n", from_column, from_row, action, column, row);
        } else if (strstr(line, "\"type\":\"close\"")) {
            break;
        } else {
            printf("{\"error\":\"expected hello, reset, step or close\",\"id\":%ld}\n", id);
        }
        fflush(stdout); /* a pipe is buffered: without this no answer would arrive */
    }
    if (log) fclose(log);
    return 0;
}
