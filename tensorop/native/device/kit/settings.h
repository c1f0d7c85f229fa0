/* Settings from the plan. */
#ifndef TENSOROP_KIT_SETTINGS_H
#define TENSOROP_KIT_SETTINGS_H

struct settings {
    double every, l2, graph_us, heat_ms; /* judge.c, clock.c */
    int rounds, seconds, calls; /* seconds: time limit of a step; calls: of soak.c, 0 for none */
};
extern struct settings settings;
extern double clock_l2, clock_graph_us, clock_heat_ms;

#endif
