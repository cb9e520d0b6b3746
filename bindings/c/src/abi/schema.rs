//! Schemas, and the files of devices.

use super::memory::{Buffer, Error, call, free, there, utf8};
use super::values::{Value, given};
use crate::constants::{
    ALPHEUS_AVRO, ALPHEUS_KIND_BOOLEAN, ALPHEUS_KIND_DECIMAL, ALPHEUS_KIND_TEXT, ALPHEUS_YAML,
};
use crate::device::{self, IdentityTexts};
use crate::randomness::Randomness;
use crate::refusal::Refusal;
use crate::shape::{Format, Shape};
use crate::values::row;
use alpheus_policy::schema::{Attribute as Declared, AttributeKind};
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// A schema that was checked. It does not change, and any thread may use it.
pub struct Schema(pub(super) Arc<Shape>);

/// Which stream a device sends, and with which keys. Any thread may use it. Its keys are wiped when it is freed.
pub struct Device(pub(super) device::Device);

/// What a schema says.
#[repr(C)]
pub struct SchemaInfo {
    /// The hash of its content.
    pub id: [u8; 32],
    /// Microseconds between borders.
    pub tick_us: u64,
    /// Words of an event.
    pub words: u32,
    /// Attributes of an event.
    pub attributes: u32,
    /// 1 if each event has a frame, 0 if each tick has one.
    pub frames_are_events: i32,
}

/// What a schema says of an attribute. The name belongs to the schema, and lives as long.
#[repr(C)]
pub struct Attribute {
    /// The name, of `name_length` bytes.
    pub name: *const c_char,
    /// Bytes of the name.
    pub name_length: usize,
    /// `ALPHEUS_KIND_DECIMAL`, `ALPHEUS_KIND_BOOLEAN` or `ALPHEUS_KIND_TEXT`.
    pub kind: i32,
    /// Decimal places of a number; digits beyond them are rounded.
    pub decimals: u32,
    /// Smallest number, in units of 10^-`decimals`.
    pub min: i64,
    /// Largest number, in the same units; of a text, the largest length in bytes.
    pub max: i64,
    /// 1 if an event may lack it.
    pub optional: i32,
}

/// The files of a device, as texts.
#[repr(C)]
pub struct DeviceFiles {
    /// The device's file, from `alpheus owner add`. It holds the stream's key.
    pub device: *const c_char,
    /// Its bytes.
    pub device_length: usize,
    /// `deployment.json` of `alpheus ca issue`; NULL under a schema with `frames: events`.
    pub deployment: *const c_char,
    /// Its bytes.
    pub deployment_length: usize,
    /// `device.txt` of the same folder.
    pub certificate: *const c_char,
    /// Its bytes.
    pub certificate_length: usize,
    /// `device.seed` of the same folder, which is secret.
    pub seed: *const c_char,
    /// Its bytes.
    pub seed_length: usize,
}

/// Reads a schema: `format` is `ALPHEUS_YAML` or `ALPHEUS_AVRO`.
///
/// # Safety
/// `text` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alpheus_schema_read(
    text: *const c_char,
    length: usize,
    format: i32,
    schema: Option<&mut MaybeUninit<Option<Box<Schema>>>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let schema = there(schema, "schema")?.write(None);
        let format = match format {
            ALPHEUS_YAML => Format::Yaml,
            ALPHEUS_AVRO => Format::Avro,
            _ => return Err(Refusal::argument("Format", "`format` is YAML or Avro")),
        };
        // SAFETY: the caller answers for it.
        let text = unsafe { utf8(text, length, "text") }?;
        *schema = Some(Box::new(Schema(Arc::new(Shape::read(text, format)?))));
        Ok(())
    })
}

/// Frees a schema, and sets the variable to NULL. Devices and sessions of it stay.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_schema_free(schema: Option<&mut Option<Box<Schema>>>) {
    free(schema);
}

/// What a schema says.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_schema_describe(
    schema: Option<&Schema>,
    info: Option<&mut MaybeUninit<SchemaInfo>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let (Schema(shape), info) = (there(schema, "schema")?, there(info, "info")?);
        info.write(SchemaInfo {
            id: shape.schema.id().0,
            tick_us: shape.schema.tick.0,
            words: shape.layout.words.into(),
            attributes: u32::try_from(shape.schema.attributes.len()).unwrap_or(u32::MAX),
            frames_are_events: shape.schema.frames.is_events().into(),
        });
        Ok(())
    })
}

/// What a schema says of the attribute at a place, from 0.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_schema_attribute(
    schema: Option<&Schema>,
    place: u32,
    attribute: Option<&mut MaybeUninit<Attribute>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let (Schema(shape), out) = (there(schema, "schema")?, there(attribute, "attribute")?);
        let declared = usize::try_from(place).ok();
        let declared = declared.and_then(|place| shape.schema.attributes.get(place));
        let none = || Refusal::argument("Place", "the schema has no attribute at this place");
        out.write(described(declared.ok_or_else(none)?));
        Ok(())
    })
}

fn described(declared: &Declared) -> Attribute {
    let (kind, decimals, min, max) = match declared.kind {
        AttributeKind::Number { scale, min, max } => (ALPHEUS_KIND_DECIMAL, scale, min, max),
        AttributeKind::Boolean => (ALPHEUS_KIND_BOOLEAN, 0, 0, 1),
        AttributeKind::Text { max_bytes } => (ALPHEUS_KIND_TEXT, 0, 0, max_bytes.into()),
    };
    Attribute {
        name: declared.name.as_ptr().cast(),
        name_length: declared.name.len(),
        kind,
        decimals: decimals.into(),
        min,
        max,
        optional: declared.optional.into(),
    }
}

/// The words of an event in the clear: what is encrypted. It checks an event, too.
///
/// # Safety
/// `values` has `count` values with their names and texts, `words` room for `capacity` words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alpheus_schema_encode(
    schema: Option<&Schema>,
    values: *const Value,
    count: usize,
    words: *mut u64,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let Schema(shape) = there(schema, "schema")?;
        // SAFETY: the caller answers for both.
        let mut words = unsafe { Buffer::new(words, capacity, length) }?;
        // SAFETY: as above.
        let given = unsafe { given(values, count) }?;
        let row = row(&shape.schema, &given)?;
        words.write(&shape.encode(&row, &mut Randomness::system()?)?)
    })
}

/// Reads the files of a device of a schema. Wipe the texts once they are read.
///
/// # Safety
/// Each text has as many bytes as its length says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alpheus_device_read(
    schema: Option<&Schema>,
    files: Option<&DeviceFiles>,
    device: Option<&mut MaybeUninit<Option<Box<Device>>>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let out = there(device, "device")?.write(None);
        let (Schema(shape), files) = (there(schema, "schema")?, there(files, "files")?);
        // SAFETY: the caller answers for this text.
        let text = unsafe { utf8(files.device, files.device_length, "device") }?;
        let identity = if files.deployment.is_null() {
            None
        } else {
            let [deployment, certificate, seed] = [
                (files.deployment, files.deployment_length, "deployment"),
                (files.certificate, files.certificate_length, "certificate"),
                (files.seed, files.seed_length, "seed"),
            ]
            // SAFETY: the caller answers for these texts.
            .map(|(first, length, name)| unsafe { utf8(first, length, name) });
            Some(IdentityTexts { deployment: deployment?, certificate: certificate?, seed: seed? })
        };
        *out = Some(Box::new(Device(device::Device::read(shape, text, identity)?)));
        Ok(())
    })
}

/// Frees a device, wipes its keys, and sets the variable to NULL. Its sessions stay.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_device_free(device: Option<&mut Option<Box<Device>>>) {
    free(device);
}

/// The id of the device's stream: 16 bytes.
#[unsafe(no_mangle)]
pub extern "C" fn alpheus_device_stream(
    device: Option<&Device>,
    stream: Option<&mut MaybeUninit<[u8; 16]>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let Device(device) = there(device, "device")?;
        there(stream, "stream")?.write(device.stream.0);
        Ok(())
    })
}

/// The body of `POST /v1/device`, which introduces the device to the service before its first upload;
/// empty under a schema with `frames: events`, which needs no introduction.
///
/// # Safety
/// `buffer` has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alpheus_device_introduction(
    device: Option<&Device>,
    buffer: *mut u8,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Error>>,
) -> i32 {
    call(error, || {
        let Device(device) = there(device, "device")?;
        // SAFETY: the caller answers for it.
        let mut buffer = unsafe { Buffer::new(buffer, capacity, length) }?;
        buffer.write(device.identity.as_ref().map_or(&[], |identity| &identity.certificate))
    })
}
