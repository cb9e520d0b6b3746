//! `alpheus pass client code`: a login code for a gate, as text or as a QR code.
//! Nobody is asked: the code comes from the pinned card and this machine's clock.

use crate::commands::Globals;
use crate::entropy;
use crate::failure::{Blame, Category, Failure};
use crate::pass::client::Place;
use crate::pass::client::passes::NoPass;
use crate::pass::client::passfile::PassFile;
use crate::pass::clock;
use alpheus_access_pass::code::{Binding, GateNonce, present};
use alpheus_anonymous_credential::error::HolderRefused;
use data_encoding::{BASE32_NOPAD, HEXLOWER_PERMISSIVE};
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};

const EXAMPLES: &str = "\
Examples:
  alpheus pass client code --pass ada.pass --key-file ada.key --qr
  alpheus pass client code --pass ada.pass --key-file ada.key --nonce 00112233445566778899aabbccddeeff

A code spends this epoch and those after it that the deployment's codes spend. It is shown
again by the same command, and bound anew each time: to ten seconds, or to a gate's nonce.";

/// Arguments of `alpheus pass client code`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    place: Place,
    /// Draw it, for a camera
    #[arg(long)]
    qr: bool,
    /// The nonce that the gate shows: 32 hexadecimal digits
    #[arg(long, value_name = "HEX", value_parser = parse_nonce)]
    nonce: Option<GateNonce>,
}

/// A gate's nonce from its text.
///
/// # Errors
/// What it should be.
pub(crate) fn parse_nonce(text: &str) -> Result<GateNonce, String> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok();
    let nonce = bytes.and_then(|bytes| bytes.try_into().ok());
    nonce.ok_or_else(|| "a nonce is 32 hexadecimal digits".to_owned())
}

/// Runs the command.
///
/// # Errors
/// There is no pass, the epoch is burnt, or the pass file cannot be used.
pub(super) fn run(args: &Args, _globals: &Globals) -> Result<(), Failure> {
    let mut file = PassFile::open(&args.place.pass, &args.place.key_file)?;
    let pinned = file.card()?.pinned;
    let now = clock::now();
    let epoch = pinned.schedule.epoch_at(now).ok_or(HolderRefused::Epoch);
    let period = pinned.schedule.period_of(epoch.blame(Category::Refused)?);
    let holder = file.holder(&pinned, period)?;
    let mut holder = holder.ok_or(NoPass).blame(Category::Refused)?;
    let compared = pinned.compare(&pinned.fingerprint()).blame(Category::Io)?;
    let made = holder.code(now, &compared, &mut entropy::rng()?).blame(Category::Refused)?;
    let code = made.commit(&mut file).blame(Category::Io)?;
    let binding = args.nonce.map_or_else(|| Binding::now(now), Binding::Gate);
    let shown = present(&holder, &code, &binding).blame(Category::Refused)?;
    let text = BASE32_NOPAD.encode(&shown);
    if args.qr {
        // Text of these letters and digits takes five and a half bits each.
        let drawn = QrCode::with_error_correction_level(&text, EcLevel::L).blame(Category::Io)?;
        println!("{}", drawn.render::<Dense1x2>().quiet_zone(true).build());
    } else {
        println!("{text}");
    }
    Ok(())
}
