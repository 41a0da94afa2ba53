//! Parses the command line, runs it, and ends with its exit code.

fn main() -> std::process::ExitCode {
    kraftd::cli::main()
}
