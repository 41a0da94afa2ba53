//! Simulation runs: seeds in, verdicts out.
fn main() {}
