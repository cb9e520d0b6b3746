//! Every domain-separation label of the protocols, in one place so that no two
//! uses share one. What stands elsewhere (ids of the policy crate, which knows
//! no cryptography; keys of an embedded deployment) is held apart from these by
//! `cargo xtask tidy`.
//!
//! A label ends in its version. Whoever changes what is hashed, derived, MACed
//! or signed under a label gives it a new version, so that old and new never
//! mean each other.

/// AES subkey of one stream for one day (HKDF).
pub const STREAM_DAY: &str = "alpheus/stream/day/v1";
/// Key for the MACs of one stream's borders (HKDF).
pub const STREAM_BORDER: &str = "alpheus/stream/border/v1";
/// A border event under its stream's border key (HMAC).
pub const BORDER: &str = "alpheus/border/v1";
/// A key agreed by two parties, bound to both public keys (HKDF).
pub const AGREEMENT: &str = "alpheus/agreement/v1";
/// Pads between two controllers, from what they agreed on (HKDF).
pub const MASK_PAIR: &str = "alpheus/mask/pair/v1";
/// Which rounds two controllers share a mask in, from the same (HKDF).
pub const MASK_GRAPH: &str = "alpheus/mask/graph/v1";
/// A controller's masks of its own, from a secret of its own (HKDF).
pub const MASK_OWN: &str = "alpheus/mask/own/v1";
/// What a window's masks are bound to: plan, window, membership (hash).
pub const MASK: &str = "alpheus/mask/v1";
/// What an opening is bound to: what its masks are, and the opening set (hash).
pub const MASK_OPEN: &str = "alpheus/open/v1";
/// What a round's graph is bound to: strategy, plan, epoch or round (hash).
pub const MASK_ROUND: &str = "alpheus/mask/round/v1";
/// Who is in a roster, and how many each picks (hash).
pub const MASK_ROSTER: &str = "alpheus/mask/roster/v1";
/// Whom a controller picks of a roster, from a secret of its own (HKDF).
pub const MASK_PICKS: &str = "alpheus/mask/picks/v1";
/// A member's leaf of M: its presence, and who picked it (hash).
pub const MASK_PICKERS: &str = "alpheus/mask/pickers/v1";
/// Pads over what one consumer alone may read, from what a controller and the
/// consumer agreed on (HKDF).
pub const CONSUMER_PAIR: &str = "alpheus/consumer/pair/v1";
/// What a window's pads for a consumer are bound to: plan, window, membership (hash).
pub const CONSUMER_PAD: &str = "alpheus/consumer/pad/v1";
/// Whom a controller picks, by it (signature).
pub const PICKS: &str = "alpheus/picks/v1";
/// A certificate, by the deployment's authority (signature).
pub const CERTIFICATE: &str = "alpheus/certificate/v1";
/// A plan, by the service (signature).
pub const ANNOUNCEMENT: &str = "alpheus/announcement/v3";
/// A plan is accepted, by a controller (signature).
pub const ACCEPTANCE: &str = "alpheus/acceptance/v1";
/// A plan is refused, by a controller (signature).
pub const REFUSAL: &str = "alpheus/refusal/v1";
/// A window has closed, by the service (signature).
pub const SUMMONS: &str = "alpheus/summons/v1";
/// The answer to a summons, by a controller (signature).
pub const PRESENCE: &str = "alpheus/presence/v1";
/// M, by the service (signature).
pub const MEMBERSHIP: &str = "alpheus/membership/v1";
/// T, by a controller (signature).
pub const TOKEN: &str = "alpheus/token/v1";
/// S, by the service (signature).
pub const OPENING_SET: &str = "alpheus/opening-set/v1";
/// o, by a controller (signature).
pub const OPENING: &str = "alpheus/opening/v1";
/// Something about a window is not answered, by a controller (signature).
pub const DECLINED: &str = "alpheus/declined/v1";
/// The end of a window, by the service (signature).
pub const CLOSING: &str = "alpheus/closing/v1";
/// The end of a plan, by the service (signature).
pub const RETIREMENT: &str = "alpheus/retirement/v1";
/// A line of the owners' log, to tell it from others of its time (hash).
pub const LOG_LINE: &str = "alpheus/log-line/v1";
/// An owner's choice for a stream, by the owner (signature).
pub const ANNOTATION: &str = "alpheus/annotation/v1";
/// One stream of a window that opens, for whoever adds up at scale (hash).
pub const JOB_STREAM_SET: &str = "alpheus/jvm/stream-set/v1";
/// One controller of such a window, by its position (hash).
pub const JOB_TOKEN_SET: &str = "alpheus/jvm/token-set/v1";
/// Consent is taken back, by the owner (signature).
pub const WITHDRAWAL: &str = "alpheus/withdrawal/v1";
/// A stream's key has been destroyed, by its controller (signature).
pub const ERASURE: &str = "alpheus/erasure/v1";
/// The key of one slot of a vault, from the vault's key and the slot's own (HKDF).
pub const VAULT_SLOT: &str = "alpheus/vault/slot/v1";
/// Where a stream is guarded and what sends it, by its owner (signature).
pub const PLACEMENT: &str = "alpheus/placement/v1";
/// An owner's id, from their public key (hash).
pub const OWNER: &str = "alpheus/owner/v1";
/// A controller's signing key, from its seed (HKDF).
pub const IDENTITY_SIGNING: &str = "alpheus/identity/signing/v1";
/// A controller's agreement key, from its seed (HKDF).
pub const IDENTITY_AGREEMENT: &str = "alpheus/identity/agreement/v1";
/// The secret of a controller's self-masks, from its seed (HKDF).
pub const IDENTITY_OWN: &str = "alpheus/identity/own/v1";
/// The key for which master secrets are sealed, from its seed (HKDF).
pub const IDENTITY_SEALING: &str = "alpheus/identity/sealing/v1";
/// The secret that a controller's noise is drawn from, from its seed (HKDF).
pub const IDENTITY_NOISE: &str = "alpheus/identity/noise/v1";
/// A consumer's signing key, from its seed (HKDF).
pub const CONSUMER_SIGNING: &str = "alpheus/consumer/signing/v1";
/// A consumer's agreement key, from its seed (HKDF).
pub const CONSUMER_AGREEMENT: &str = "alpheus/consumer/agreement/v1";
/// The seed of one window's share of noise, from that secret (HKDF).
pub const NOISE_SHARE: &str = "alpheus/noise/share/v1";
/// The key for which days' keys are sealed for a consumer, from its seed (HKDF).
pub const CONSUMER_SEALING: &str = "alpheus/consumer/sealing/v1";
/// An owner lets a consumer read days of a stream (signature).
pub const GRANT: &str = "alpheus/grant/v1";
/// One day's key of a stream on its way to such a consumer (HPKE).
pub const GRANTED_DAY: &str = "alpheus/grant/day/v1";
/// What one window's seeds of running totals are drawn from, from the same secret (HKDF).
pub const NOISE_SEED: &str = "alpheus/noise/seed/v1";
/// A stream's master secret on its way to its controller (HPKE).
pub const MASTER: &str = "alpheus/master/v1";
/// H, the second base of the group (hash to element).
pub const SECOND_BASE: &str = "alpheus/group/second-base/v1";
/// The nonces of a proof, from randomness, witness and statement (hash).
pub const PROOF_NONCE: &str = "alpheus/proof/nonce/v1";
/// The challenge of proofs that are made together.
pub const PROOF_TOGETHER: &str = "alpheus/proof/together/v1";
/// What the weights of a batch of proofs are drawn from (hash).
pub const PROOF_BATCH: &str = "alpheus/proof/batch/v1";
/// The weights of a batch of proofs (hash).
pub const PROOF_WEIGHTS: &str = "alpheus/proof/weights/v1";
/// What a deployment's holders, issuer and verifier agree on (signature).
pub const CREDENTIAL_CONFIGURATION: &str = "alpheus/credential/configuration/v2";
/// The public attribute m2 of a credential (hash to scalar).
pub const CREDENTIAL_ATTRIBUTES: &str = "alpheus/credential/attributes/v1";
/// T, the element of a context (hash to element).
pub const CREDENTIAL_CONTEXT: &str = "alpheus/credential/context/v1";
/// m1 and its blinding, from randomness (hash to scalar).
pub const CREDENTIAL_REQUEST_SECRETS: &str = "alpheus/credential/request-secrets/v1";
/// The blinding of an issued credential, from randomness, key and request (hash to scalar).
pub const CREDENTIAL_RESPONSE_SECRET: &str = "alpheus/credential/response-secret/v1";
/// What hides a showing, from randomness and secrets (hash).
pub const CREDENTIAL_SHOWING_SECRETS: &str = "alpheus/credential/showing-secrets/v1";
/// The proof of a request for a credential (transcript).
pub const CREDENTIAL_REQUEST: &str = "alpheus/credential/request/v1";
/// The proof of an issued credential (transcript).
pub const CREDENTIAL_RESPONSE: &str = "alpheus/credential/response/v1";
/// A request, to know it again (hash).
pub const CREDENTIAL_ASKED: &str = "alpheus/credential/asked/v1";
/// The proof of a showing (transcript).
pub const CREDENTIAL_SHOWING: &str = "alpheus/credential/showing/v1";
/// The proof of a re-up (transcript).
pub const CREDENTIAL_RE_UP: &str = "alpheus/credential/re-up/v1";
/// A spent tag's name (hash).
pub const CREDENTIAL_TAG: &str = "alpheus/credential/tag/v1";
/// A holder's key for one session, from its seed (HKDF).
pub const CREDENTIAL_SESSION_KEY: &str = "alpheus/credential/session-key/v1";
/// A connection belongs to a session, by its holder (signature).
pub const CREDENTIAL_CONNECTION: &str = "alpheus/credential/connection/v1";
/// A session ends, by its holder (signature).
pub const CREDENTIAL_LOGOUT: &str = "alpheus/credential/logout/v1";
/// For whom a code's tags are held on other shards (hash).
pub const CREDENTIAL_CODE_HOLD: &str = "alpheus/credential/code-hold/v2";
/// F', what showings about a subject are bound to (hash).
pub const CREDENTIAL_SUBJECT: &str = "alpheus/credential/subject/v1";
/// A gateway's challenge, for its own eyes (HMAC).
pub const PASS_CHALLENGE: &str = "alpheus/pass/challenge/v1";
/// What a holder signs to speak for a session: challenge and both agreement keys (hash).
pub const PASS_CONNECTION: &str = "alpheus/pass/connection/v1";
/// The key for a session's requests, from what was agreed (HKDF).
pub const PASS_REQUESTS: &str = "alpheus/pass/requests/v1";
/// A gateway has the same key (HMAC).
pub const PASS_CONFIRMATION: &str = "alpheus/pass/confirmation/v1";
/// A request of a session (HMAC).
pub const PASS_REQUEST: &str = "alpheus/pass/request/v1";
/// What a code is bound to: a gate's nonce (hash).
pub const PASS_GATE: &str = "alpheus/pass/gate/v1";
/// What a code is bound to: ten seconds (hash).
pub const PASS_TIME: &str = "alpheus/pass/time/v1";
/// A pass file, under its passphrase's key (name of what is locked).
pub const PASS_FILE: &str = "alpheus/pass/file/v1";
/// What an account shows to the issuer, as the issuer keeps it (hash).
pub const PASS_ACCOUNT: &str = "alpheus/pass/account/v1";
/// A deployment's public card (signature).
pub const PASS_CARD: &str = "alpheus/pass/card/v1";
/// A scan at a gate, to know it again (hash).
pub const PASS_SCAN: &str = "alpheus/pass/scan/v1";
/// What parties and writers of a board agree on (signature).
pub const BOARD_CONFIGURATION: &str = "alpheus/board/configuration/v2";
/// What a board's server says of an epoch, for all to read (signature).
pub const BOARD_STATEMENT: &str = "alpheus/board/statement/v2";
/// A database has an accepted write, by it (signature).
pub const BOARD_RECEIPT: &str = "alpheus/board/receipt/v2";
/// A member sends this write in this epoch, by the member (signature).
pub const BOARD_TICKET: &str = "alpheus/board/ticket/v1";
/// A writer that showed a pass may write once in this epoch, by the doorkeeper (signature).
pub const BOARD_ADMITTED: &str = "alpheus/board/admitted/v1";
/// Who admits to a board, and to whose passes (hash).
pub const BOARD_DOOR: &str = "alpheus/board/door/v1";
/// The keys of an epoch's permutations (hash).
pub const BOARD_PERMUTATIONS: &str = "alpheus/board/permutations/v1";
/// One server's key of a write (HPKE).
pub const BOARD_ENVELOPE: &str = "alpheus/board/envelope/v1";
/// A write's envelopes, and what goes with them in the clear (hash).
pub const BOARD_SUBMISSION: &str = "alpheus/board/submission/v2";
/// What both keys of a write have in common (hash).
pub const BOARD_SHARED: &str = "alpheus/board/shared/v1";
/// What a writer derives roots, nonce and envelopes from, of its seed (HKDF).
pub const BOARD_WRITE: &str = "alpheus/board/write/v1";
/// A server's secret of an epoch, by purpose (HKDF).
pub const BOARD_EPOCH: &str = "alpheus/board/epoch/v1";
/// The writes that an audit is about (hash).
pub const BOARD_CANDIDATES: &str = "alpheus/board/candidates/v1";
/// κ, from what both servers add to it and what is audited (hash).
pub const BOARD_KAPPA: &str = "alpheus/board/kappa/v1";
/// A server is bound to its digests (hash).
pub const BOARD_DIGESTS: &str = "alpheus/board/digests/v2";
/// A server is bound to what it opens, in mode 2 (hash).
pub const BOARD_ANSWERS: &str = "alpheus/board/answers/v1";
/// What all databases have committed to and opened (hash).
pub const BOARD_OPENS: &str = "alpheus/board/opens/v1";
/// The agreed set (hash).
pub const BOARD_SET: &str = "alpheus/board/set/v1";
/// The masks of both shares of a table, from what the databases agreed on (HKDF).
pub const BOARD_MASK: &str = "alpheus/board/mask/v1";
/// A server is bound to its masked share (hash).
pub const BOARD_SHARE: &str = "alpheus/board/share/v1";
/// A published table (hash).
pub const BOARD_TABLE: &str = "alpheus/board/table/v1";
/// The check of a row's content (hash).
pub const BOARD_ROW: &str = "alpheus/board/row/v1";
/// Who may write to a board (hash).
pub const BOARD_MEMBERS: &str = "alpheus/board/members/v1";
/// A root that was opened, to know it again (hash).
pub const BOARD_ROOT: &str = "alpheus/board/seen-root/v1";
/// A writer is bound to one server's key, in mode 2 (hash).
pub const BOARD_KEY: &str = "alpheus/board/key/v1";
/// All of a write's bindings (hash).
pub const BOARD_KEYS: &str = "alpheus/board/keys/v1";
/// What all servers get of a write of mode 2 (hash).
pub const BOARD_COMMON: &str = "alpheus/board/common/v1";
/// One server's part of a write of mode 2 (HPKE).
pub const BOARD_PART: &str = "alpheus/board/part/v1";
/// What a write of mode 2 is for and whose it is (hash).
pub const BOARD_BOUND: &str = "alpheus/board/bound/v1";
/// Where a write is audited, from its bindings (hash).
pub const BOARD_POINTS: &str = "alpheus/board/points/v1";
/// Where proofs are opened, from what the servers have drawn (hash).
pub const BOARD_PLACE: &str = "alpheus/board/place/v1";
/// The base of a cell of a table that is kept in a group (hash to element).
pub const BOARD_BASE: &str = "alpheus/board/base/v1";
/// What weighs the elements of a column in its proof (hash to scalar).
pub const BOARD_COLUMN: &str = "alpheus/board/column/v1";
/// The proof that all columns but one are nothing (hash to scalar).
pub const BOARD_LINE: &str = "alpheus/board/line/v1";
/// A board's public card (signature).
pub const BOARD_CARD: &str = "alpheus/board/card/v2";
/// A table's secrets, each for one purpose, from the owner's key (HKDF).
pub const TABLE_KEY: &str = "alpheus/table/key/v1";
/// c1 of a ciphertext, from its public seed (HKDF).
pub const TABLE_UNIFORM: &str = "alpheus/table/uniform/v1";
/// What a ciphertext is drawn from: randomness, key and label (HKDF).
pub const TABLE_BLOCK: &str = "alpheus/table/block/v1";
/// The masks of one segment, epoch and kind of tag (HKDF).
pub const TABLE_MASK: &str = "alpheus/table/mask/v1";
/// The secrets of a table of the paper's own scheme, each for one purpose (HKDF).
pub const TABLE_PAIRING_KEY: &str = "alpheus/table/pairing-key/v1";
/// c1 of its ciphertexts, from a public seed (HKDF).
pub const TABLE_PAIRING_UNIFORM: &str = "alpheus/table/pairing-uniform/v1";
/// What its ciphertexts are drawn from: randomness, key and label (HKDF).
pub const TABLE_PAIRING_BLOCK: &str = "alpheus/table/pairing-block/v1";
/// Its masks: of inputs, and of data sets (HKDF).
pub const TABLE_PAIRING_MASK: &str = "alpheus/table/pairing-mask/v1";
/// M, the base of the values in accountable statistics (hash to element).
pub const STATISTICS_MESSAGE_BASE: &str = "alpheus/statistics/message-base/v1";
/// What tuples of a key and an interval are proven and checked by (hash).
pub const STATISTICS_TERMS: &str = "alpheus/statistics/terms/v1";
/// What a tuple is bound to: tag, aggregate, slot, revision, ephemeral key (hash).
pub const STATISTICS_BINDING: &str = "alpheus/statistics/binding/v1";
/// What hides a contribution, from randomness, contribution and binding (hash to scalar).
pub const STATISTICS_BLINDING: &str = "alpheus/statistics/blinding/v1";
/// The proof that a tuple is well-formed (transcript).
pub const STATISTICS_TUPLE: &str = "alpheus/statistics/tuple/v1";
/// The range proof of a tuple (transcript).
pub const STATISTICS_RANGE: &str = "alpheus/statistics/range/v1";
/// What a tuple's range proof is bound to (hash).
pub const STATISTICS_RANGE_STATEMENT: &str = "alpheus/statistics/range-statement/v1";
/// A tuple, to know it again (hash).
pub const STATISTICS_TUPLE_DIGEST: &str = "alpheus/statistics/tuple-digest/v1";
/// What a key is generated for, and among whom (hash).
pub const STATISTICS_KEY_COMMITTEE: &str = "alpheus/statistics/key/committee/v1";
/// One attempt at a key, and the keys that shares are sealed for in it (hash).
pub const STATISTICS_KEY_CEREMONY: &str = "alpheus/statistics/key/ceremony/v1";
/// What a member's shares are sealed for in one attempt, from its seed (HKDF).
pub const STATISTICS_KEY_SEALING: &str = "alpheus/statistics/key/sealing/v1";
/// A dealer is bound to its dealing (hash).
pub const STATISTICS_KEY_PLEDGE: &str = "alpheus/statistics/key/pledge/v1";
/// A dealer's polynomial, from randomness (hash to scalar).
pub const STATISTICS_KEY_COEFFICIENT: &str = "alpheus/statistics/key/coefficient/v1";
/// A member's share of a dealing (HPKE).
pub const STATISTICS_KEY_SHARE: &str = "alpheus/statistics/key/share/v1";
/// The proof that a dealer knows what it deals (transcript).
pub const STATISTICS_KEY_DEALING: &str = "alpheus/statistics/key/dealing/v1";
/// All that was said when a key was generated (hash).
pub const STATISTICS_KEY_TRANSCRIPT: &str = "alpheus/statistics/key/transcript/v1";
/// The proof of a partial decryption (transcript).
pub const STATISTICS_PARTIAL: &str = "alpheus/statistics/partial/v1";
/// What operator, smoothers, aggregator and clients agree on (signature).
pub const STATISTICS_CONFIGURATION: &str = "alpheus/statistics/configuration/v1";
/// An aggregate, by a smoother (signature).
pub const STATISTICS_DEFINITION: &str = "alpheus/statistics/definition/v1";
/// What a key is generated for: a key epoch of a deployment (hash).
pub const STATISTICS_DAY: &str = "alpheus/statistics/day/v1";
/// A key epoch's public keys, by a smoother (signature).
pub const STATISTICS_CARD: &str = "alpheus/statistics/card/v1";
/// A deployment's card, by its operator (signature).
pub const STATISTICS_CARD_FILE: &str = "alpheus/statistics/card-file/v1";
/// What a smoother says while a key is made (signature).
pub const STATISTICS_KEY_WORD: &str = "alpheus/statistics/key/word/v1";
/// A smoother votes for a key (signature).
pub const STATISTICS_KEY_VOTE: &str = "alpheus/statistics/key/vote/v1";
/// The key that is voted for (hash).
pub const STATISTICS_KEY_SHARED: &str = "alpheus/statistics/key/shared/v1";
/// What a slot credential is shown for (hash).
pub const STATISTICS_REQUEST: &str = "alpheus/statistics/request/v1";
/// A slot is given to a key, by its keeper (signature).
pub const STATISTICS_GRANT: &str = "alpheus/statistics/grant/v1";
/// What an upload credential is shown for (hash).
pub const STATISTICS_UPLOAD: &str = "alpheus/statistics/upload/v1";
/// An upload, as ledgers know it (hash).
pub const STATISTICS_CONTENT: &str = "alpheus/statistics/content/v1";
/// A showing, inside of that (hash).
pub const STATISTICS_SHOWING: &str = "alpheus/statistics/showing/v1";
/// An upload on its way to the aggregator (HPKE).
pub const STATISTICS_SEALED: &str = "alpheus/statistics/sealed/v1";
/// An upload is deposited, by the slot's ephemeral key (signature).
pub const STATISTICS_DEPOSIT: &str = "alpheus/statistics/deposit/v2";
/// What is sealed, inside of an entry (hash).
pub const STATISTICS_DEPOSITED: &str = "alpheus/statistics/deposited/v1";
/// An entry of the ledger of slots, by a smoother (signature); its leaf (hash).
pub const STATISTICS_ENTRY: &str = "alpheus/statistics/entry/v2";
/// A leaf under the root of all tuples (hash).
pub const STATISTICS_COUNTED: &str = "alpheus/statistics/counted/v2";
/// Both roots of an aggregate, by the aggregator (signature).
pub const STATISTICS_CLOSING: &str = "alpheus/statistics/closing/v1";
/// A smoother would decrypt this set and no other (signature).
pub const STATISTICS_READY: &str = "alpheus/statistics/ready/v1";
/// A part of a decryption, by a smoother (signature).
pub const STATISTICS_OPENING: &str = "alpheus/statistics/opening/v1";
/// How an aggregate ended, by a smoother (signature).
pub const STATISTICS_OUTCOME: &str = "alpheus/statistics/outcome/v1";
/// A client's key for one slot, from a seed (HKDF).
pub const STATISTICS_EPHEMERAL: &str = "alpheus/statistics/ephemeral/v1";
/// A pure count, by the operator (signature).
pub const STATISTICS_TALLY: &str = "alpheus/statistics/tally/v1";
