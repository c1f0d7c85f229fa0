/* Settings from the plan. */
#ifndef TENSOROP_KIT_SETTINGS_H
#define TENSOROP_KIT_SETTINGS_H

struct settings {
    double every, l2, graph_us, heat_ms; /* judge.c, clock.c */
    int rounds, seconds;                 /* seconds: time limit of a step */
};
extern struct settings settings;
extern double clock_l2, clock_graph_us, clock_heat_ms;

#endif
