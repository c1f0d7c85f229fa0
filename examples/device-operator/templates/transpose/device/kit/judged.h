/* A problem that a kit judges. */
struct judged {
    int m, n, batch, format, type;
    float alpha;
};
