//! Simulation runs: seeds in, verdicts out.
