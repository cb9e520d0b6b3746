/**
 * The pieces that {@link Stream} is made of, for those who bring their own clock, transport or tests. They read no
 * clock, open no connection and draw no randomness of their own.
 */
export * from './bytes.js';
export { delimited, labelledHash, link, merkleRoot } from './crypto/hash.js';
export { deriveBytes, importSecret, StreamKey, TagKey } from './crypto/keys.js';
export { hpkeSeal, SealingKey, SealingPublic } from './crypto/seal.js';
export { SigningKey, VerifyingKey } from './crypto/sign.js';
export { agree } from './crypto/x25519.js';
export { DecimalError, parseExact, parseScaled } from './document/decimal.js';
export { DocumentError } from './document/problem.js';
export { Encoder, type Random } from './encode/encoder.js';
export { checkRow, EncodeError, type Input, rowOf, type Value } from './encode/row.js';
export { add, addTo, bytesOf, encipher, wordAt, type Words, zeros } from './encode/words.js';
export { AlpheusError, CryptoError } from './errors.js';
export {
  type Certificate,
  CertificateError,
  certificateOfKey,
  readCertificate,
  readSeed,
  type Role,
  signingKeyOf,
} from './identity/certificate.js';
export { type Deployment, readDeployment } from './identity/deployment.js';
export { LayoutError, layoutOf } from './layout/build.js';
export type { Cell, Field, Layout, Packing, Statistic } from './layout/model.js';
export { attributesOf } from './layout/model.js';
export { PostcardError, Reader as PostcardReader, Writer as PostcardWriter } from './postcard.js';
export { schemaId } from './schema/id.js';
export type { Aggregation, Attribute, Schema } from './schema/model.js';
export { schemaFromAvsc, schemaFromJson } from './schema/read.js';
export { schemaFromYaml } from './schema/yaml.js';
export { ProducerError } from './stream/error.js';
export { type Frame, FrameError, parseFrame } from './stream/frame.js';
export { MasterSecret, StreamKeys } from './stream/keys.js';
export { Producer, type ProducerSetup, Session } from './stream/producer.js';
export type { Start } from './stream/start.js';
export { Blocks, blocksOf } from './tick/blocks.js';
export { type Claim, ClaimKind, endsPeriod, isGap, makeClaim, openClaim, type Statement } from './tick/claim.js';
export { parseTickFrame, type Previous, SessionKey, type TickFrame, TickFrameError } from './tick/frame.js';
export { type DeviceIdentity, openingContext, openSessionKey, verifyOpening } from './tick/opening.js';
export { TickProducer, TickSession, type TickSetup } from './tick/producer.js';
