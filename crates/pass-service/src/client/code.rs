//! `alpheus pass client code`: a login code for a gate, as text or as a QR code. It works
//! offline, from the pinned card and this machine's clock.

use crate::client::PassFileArgs;
use crate::client::passes::NoPassError;
use crate::client::passfile::PassFile;
use alpheus_access_pass::code::{Binding, GateNonce, present};
use alpheus_anonymous_credential::error::HolderError;
use alpheus_anonymous_credential::schedule::Period;
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::globals::Globals;
use data_encoding::{BASE32_NOPAD, HEXLOWER_PERMISSIVE};
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};

const EXAMPLES: &str = "\
Examples:
  alpheus pass client code --pass ada.pass --key-file ada.key --qr
  alpheus pass client code --pass ada.pass --key-file ada.key \\
      --nonce 00112233445566778899aabbccddeeff

A code spends the current epoch, and as many later ones as the deployment defines. The same command
prints the same code again, freshly bound each time to ten seconds or to a gate's nonce.";

/// Arguments of `alpheus pass client code`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    file: PassFileArgs,
    /// Print a QR code
    #[arg(long)]
    qr: bool,
    /// The nonce that the gate displays: 32 hexadecimal digits
    #[arg(long, value_name = "HEX", value_parser = parse_nonce)]
    nonce: Option<GateNonce>,
}

/// Parses a gate's nonce.
///
/// # Errors
/// The expected format.
pub(crate) fn parse_nonce(text: &str) -> Result<GateNonce, String> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok();
    let nonce = bytes.and_then(|bytes| bytes.try_into().ok());
    nonce.ok_or_else(|| "a nonce is 32 hexadecimal digits".to_owned())
}

/// Runs the command.
///
/// # Errors
/// There is no pass, the epoch is used up, or the pass file cannot be used.
pub(super) fn run(args: &Args, _globals: &Globals) -> Result<(), Failure> {
    let mut file = PassFile::open(&args.file.pass, &args.file.key_file)?;
    let pinned = file.card()?.pinned;
    let now = clock::now();
    let epoch = pinned.schedule.epoch_at(now).ok_or(HolderError::Epoch);
    let period = pinned.schedule.period_of(epoch.blame(Category::Refused)?);
    let holder = file.holder(&pinned, period)?;
    let mut holder = holder.ok_or(NoPassError).blame(Category::Refused)?;
    // A running client does this too, but not one that only prints codes.
    file.forget_before(Period(period.0.saturating_sub(1))).blame(Category::Io)?;
    let compared = pinned.compare(&pinned.fingerprint()).blame(Category::Io)?;
    let made = holder.code(&compared, now, &mut entropy::rng()?).blame(Category::Refused)?;
    let code = made.commit(&mut file).blame(Category::Io)?;
    let binding = args.nonce.map_or_else(|| Binding::now(now), Binding::Gate);
    let shown = present(&holder, &code, &binding).blame(Category::Refused)?;
    let text = BASE32_NOPAD.encode(&shown);
    if args.qr {
        // A QR code stores each of these characters in five and a half bits.
        let drawn = QrCode::with_error_correction_level(&text, EcLevel::L).blame(Category::Io)?;
        println!("{}", drawn.render::<Dense1x2>().quiet_zone(true).build());
    } else {
        println!("{text}");
    }
    Ok(())
}
