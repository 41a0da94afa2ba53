//! Threads, channels, clock, signals and shutdown order: what ties the rooms together.
