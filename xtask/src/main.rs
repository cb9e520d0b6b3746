//! The project's chores: `cargo xtask tidy` and `cargo xtask vectors`.

mod tidy;
mod tree;
mod vectors;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask <CHORE>

Chores:
  tidy              check the house rules that the compiler does not know
  vectors           rewrite the test vectors with their Python generators
  vectors --check   regenerate them elsewhere and compare with the tracked ones";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    // xtask/ stands directly under the root. Cargo says where it is now: what was built may be of another clone.
    let own = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    let root = Path::new(&own).parent().filter(|root| root.join("xtask/Cargo.toml").is_file());
    let Some(root) = root else {
        eprintln!("xtask: start it with `cargo xtask`, within the repository");
        return ExitCode::from(2);
    };
    let done = match words.as_slice() {
        ["tidy"] => tidy::run(root),
        ["vectors"] => vectors::run(root, vectors::Mode::Write),
        ["vectors", "--check"] => vectors::run(root, vectors::Mode::Check),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(summary) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(complaint) => {
            eprintln!("{complaint}");
            ExitCode::FAILURE
        }
    }
}
