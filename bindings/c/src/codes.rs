//! The codes of the interface. Those from 100 on are its own; all others are ids of the product's
//! failures, which `alpheus errors ID` explains.

use crate::constants::*;
use std::ffi::CStr;

macro_rules! codes {
    ($($name:ident = $constant:ident, $id:literal;)+) => {
        /// How a call ended.
        #[repr(i32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $(#[doc = stringify!($constant)] $name = $constant,)+ }

        impl Code {
            /// All codes.
            pub const ALL: &[Code] = &[$(Code::$name),+];

            /// The id.
            #[must_use]
            pub const fn id(self) -> &'static CStr {
                match self { $(Code::$name => $id,)+ }
            }
        }
    };
}

codes! {
    Ok = ALPHEUS_OK, c"ok";
    FileNotText = ALPHEUS_FILE_NOT_TEXT, c"file-not-text";
    FileInvalid = ALPHEUS_FILE_INVALID, c"file-invalid";
    SchemaInvalid = ALPHEUS_SCHEMA_INVALID, c"schema-invalid";
    LineRefused = ALPHEUS_LINE_REFUSED, c"line-refused";
    IdentityInvalid = ALPHEUS_IDENTITY_INVALID, c"identity-invalid";
    CertificateRefused = ALPHEUS_CERTIFICATE_REFUSED, c"certificate-refused";
    KeyWrong = ALPHEUS_KEY_WRONG, c"key-wrong";
    ServerOtherVersion = ALPHEUS_SERVER_OTHER_VERSION, c"server-other-version";
    CardInvalid = ALPHEUS_CARD_INVALID, c"card-invalid";
    PassRefused = ALPHEUS_PASS_REFUSED, c"pass-refused";
    PassMissing = ALPHEUS_PASS_MISSING, c"pass-missing";
    PassfileInvalid = ALPHEUS_PASSFILE_INVALID, c"passfile-invalid";
    IoFailed = ALPHEUS_IO_FAILED, c"io-failed";
    InternalError = ALPHEUS_INTERNAL_ERROR, c"internal-error";
    ArgumentWrong = ALPHEUS_ARGUMENT_WRONG, c"argument-wrong";
    BufferSmall = ALPHEUS_BUFFER_SMALL, c"buffer-small";
    HandleClosed = ALPHEUS_HANDLE_CLOSED, c"handle-closed";
    HandleBusy = ALPHEUS_HANDLE_BUSY, c"handle-busy";
    ProcessCopied = ALPHEUS_PROCESS_COPIED, c"process-copied";
}
