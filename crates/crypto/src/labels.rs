//! All domain-separation labels of the protocols. They are in one place so that no two uses
//! share a label.
//!
//! A few labels are defined elsewhere: the ids of the policy crate, which uses no cryptography,
//! and the keys of an embedded deployment. `cargo xtask tidy` checks that they differ from these.
//!
//! A label ends in its version. If you change what is hashed, derived, MACed or signed under a
//! label, change its version too, so that nobody mistakes an old value for a new one.

/// Derives the AES subkey of one stream for one day (HKDF).
pub const STREAM_DAY: &str = "alpheus/stream/day/v1";
/// Derives the key for the MACs of one stream's borders, of tick frames and boundary events (HKDF).
pub const STREAM_BORDER: &str = "alpheus/stream/border/v1";
/// The MAC of a boundary event under its stream's border key (HMAC).
pub const BORDER: &str = "alpheus/border/v1";
/// The MAC of what a tick frame states, under its stream's boundary key (HMAC).
pub const TICK: &str = "alpheus/tick/v2";
/// The pad over a tick frame's number of events, under the same key (HMAC).
pub const TICK_COUNT: &str = "alpheus/tick/count/v2";
/// The MAC of a whole tick frame under its session's key (HMAC).
pub const TICK_FRAME: &str = "alpheus/frame/v2";
/// A device signs the opening of a session (signature).
pub const TICK_OPENING: &str = "alpheus/opening/v2";
/// A device seals a session's key for the service (HPKE).
pub const SESSION_KEY: &str = "alpheus/session-key/v2";
/// Names a hybrid public key in a certificate (hash).
pub const HYBRID_KEY: &str = "alpheus/hybrid-key/v1";
/// Derives a key agreed by two parties, bound to both public keys (HKDF).
pub const AGREEMENT: &str = "alpheus/agreement/v1";
/// Derives the pads between two controllers from their agreed key (HKDF).
pub const MASK_PAIR: &str = "alpheus/mask/pair/v1";
/// Derives, from the same key, the rounds in which two controllers share a mask (HKDF).
pub const MASK_GRAPH: &str = "alpheus/mask/graph/v1";
/// Derives a controller's self-masks from its own secret (HKDF).
pub const MASK_OWN: &str = "alpheus/mask/own/v1";
/// Binds a window's masks to plan, window and membership (hash).
pub const MASK: &str = "alpheus/mask/v1";
/// Binds an opening to what its masks are bound to, and to the opening set (hash).
pub const MASK_OPEN: &str = "alpheus/open/v1";
/// Binds a round's graph to strategy, plan, and epoch or round (hash).
pub const MASK_ROUND: &str = "alpheus/mask/round/v1";
/// The members of a roster, and how many peers each picks (hash).
pub const MASK_ROSTER: &str = "alpheus/mask/roster/v1";
/// Derives a controller's picks from a roster, from its own secret (HKDF).
pub const MASK_PICKS: &str = "alpheus/mask/picks/v1";
/// A member's leaf of M: its presence, and which members picked it (hash).
pub const MASK_PICKERS: &str = "alpheus/mask/pickers/v1";
/// Derives the secret of a controller's generation from what they come from (HKDF).
pub const GENERATION: &str = "alpheus/generation/v1";
/// Derives, from the same, what the next generation comes from (HKDF).
pub const GENERATION_NEXT: &str = "alpheus/generation/next/v1";
/// Derives a generation's agreement key for a plan (HKDF).
pub const GENERATION_AGREEMENT: &str = "alpheus/generation/agreement/v1";
/// Derives the pads between two controllers from their keys for life and of generations (HKDF).
pub const MASK_PAIR_OF_GENERATION: &str = "alpheus/mask/pair/v2";
/// Derives a controller's self-masks from its secrets for life and of a generation (HKDF).
pub const MASK_OWN_OF_GENERATION: &str = "alpheus/mask/own/v2";
/// Derives the secret of noise from those for life and of a generation (HKDF).
pub const NOISE_OF_GENERATION: &str = "alpheus/noise/generation/v1";
/// A controller signs its agreement key of a generation (signature).
pub const MASK_KEY: &str = "alpheus/mask-key/v1";
/// Derives the pads over results that one consumer alone may read, from the key agreed
/// by\ncontroller and consumer (HKDF).
pub const CONSUMER_PAIR: &str = "alpheus/consumer/pair/v1";
/// Binds a window's pads for a consumer to plan, window and membership (hash).
pub const CONSUMER_PAD: &str = "alpheus/consumer/pad/v1";
/// The cells and bounds of a bounded plan (hash).
pub const BOUNDED_TERMS: &str = "alpheus/bounded/terms/v1";
/// A window of a bounded plan and its membership (hash).
pub const BOUNDED_SCOPE: &str = "alpheus/bounded/scope/v1";
/// The pads of a bounded window's shares (hash).
pub const BOUNDED_MASK: &str = "alpheus/bounded/mask/v1";
/// The pads of a bounded window's openings (hash).
pub const BOUNDED_OPEN: &str = "alpheus/bounded/open/v1";
/// The pads over a bounded row for its consumer (hash).
pub const BOUNDED_CONSUMER: &str = "alpheus/bounded/consumer/v1";
/// The blinding of a commitment, from secret, scope, owner and values (hash to scalar).
pub const BOUNDED_BLINDING: &str = "alpheus/bounded/blinding/v1";
/// The randomness of a range proof, from secret, statement and witness (HKDF).
pub const BOUNDED_NONCE: &str = "alpheus/bounded/nonce/v1";
/// What the range proofs of one controller's owners are bound to (hash).
pub const BOUNDED_OWNERS: &str = "alpheus/bounded/owners/v1";
/// What the range proof of a controller's noise is bound to (hash).
pub const BOUNDED_NOISE: &str = "alpheus/bounded/noise/v1";
/// One owner's range proof among those of a controller (hash).
pub const BOUNDED_OWNER: &str = "alpheus/bounded/owner/v1";
/// A range proof of a bounded window (transcript).
pub const BOUNDED_RANGE: &str = "alpheus/bounded/range/v1";
/// A controller's share of a bounded window, with its commitments (signature).
pub const BOUNDED_CONTRIBUTION: &str = "alpheus/bounded/contribution/v1";
/// A controller opens a bounded window (signature).
pub const BOUNDED_OPENING: &str = "alpheus/bounded/opening/v1";
/// A controller commits to the pads that it shares with others (signature).
pub const BOUNDED_EDGES: &str = "alpheus/bounded/edges/v1";
/// Derives the secret of a controller's commitments from that of its noise in a generation (HKDF).
pub const BOUNDED_SECRET: &str = "alpheus/bounded/secret/v1";
/// The service asks for commitments to pads (signature).
pub const EDGE_REQUEST: &str = "alpheus/bounded/edge-request/v1";
/// A controller signs its picks (signature).
pub const PICKS: &str = "alpheus/picks/v1";
/// The deployment's authority signs a certificate (signature).
pub const CERTIFICATE: &str = "alpheus/certificate/v2";
/// The deployment's authority signs its list of revoked certificates (signature).
pub const REVOCATION: &str = "alpheus/revocation/v1";
/// Names a TLS certificate in that list (hash).
pub const TLS_CERTIFICATE: &str = "alpheus/tls-certificate/v1";
/// Names the key of TLS certificates there (hash).
pub const TLS_KEY: &str = "alpheus/tls-key/v1";
/// The service signs a plan (signature).
pub const ANNOUNCEMENT: &str = "alpheus/announcement/v5";
/// The service calls for an epoch (signature).
pub const EPOCH_CALL: &str = "alpheus/epoch/call/v1";
/// A controller attends an epoch (signature).
pub const ATTENDANCE: &str = "alpheus/epoch/attendance/v1";
/// The service signs the list of an epoch (signature).
pub const LIST: &str = "alpheus/epoch/list/v1";
/// The entries of a list, with its plan and windows (hash).
pub const EPOCH_LIST: &str = "alpheus/epoch/entries/v1";
/// Names a set of owners that a sum is over (hash).
pub const OWNER_SET: &str = "alpheus/owner-set/v1";
/// The service signs what it states as evidence (signature).
pub const EVIDENCE: &str = "alpheus/evidence/v1";
/// The lines of such a statement (hash).
pub const EVIDENCE_LINES: &str = "alpheus/evidence/lines/v1";
/// An announcement or a receipt that such a statement names (hash).
pub const EVIDENCE_EXHIBIT: &str = "alpheus/evidence/exhibit/v1";
/// A controller accepts a plan (signature).
pub const ACCEPTANCE: &str = "alpheus/acceptance/v1";
/// A controller refuses a plan (signature).
pub const REFUSAL: &str = "alpheus/refusal/v1";
/// The service states that a window has closed (signature).
pub const SUMMONS: &str = "alpheus/summons/v2";
/// A controller answers a summons (signature).
pub const PRESENCE: &str = "alpheus/presence/v2";
/// The service signs M, the membership of a window (signature).
pub const MEMBERSHIP: &str = "alpheus/membership/v2";
/// A controller signs its token T (signature).
pub const TOKEN: &str = "alpheus/token/v1";
/// The service signs the opening set S (signature).
pub const OPENING_SET: &str = "alpheus/opening-set/v1";
/// A controller signs its opening o (signature).
pub const OPENING: &str = "alpheus/window-opening/v2";
/// A controller declines to answer a message about a window (signature).
pub const DECLINE: &str = "alpheus/declined/v1";
/// The service ends a window (signature).
pub const CLOSING: &str = "alpheus/closing/v1";
/// The service ends a plan (signature).
pub const RETIREMENT: &str = "alpheus/retirement/v1";
/// Identifies a line of the owners' log among others of its time (hash).
pub const LOG_LINE: &str = "alpheus/log-line/v1";
/// An owner signs a choice for a stream (signature).
pub const ANNOTATION: &str = "alpheus/annotation/v4";
/// One stream of a window that opens, for the job that sums at scale (hash).
pub const JOB_STREAM_SET: &str = "alpheus/jvm/stream-set/v1";
/// One controller of such a window, by its position (hash).
pub const JOB_TOKEN_SET: &str = "alpheus/jvm/token-set/v1";
/// An owner withdraws consent (signature).
pub const WITHDRAWAL: &str = "alpheus/withdrawal/v1";
/// A controller states that it has destroyed a stream's key (signature).
pub const ERASURE: &str = "alpheus/erasure/v1";
/// Derives the key of a vault from a file of random bytes and a salt (HKDF).
pub const VAULT_RANDOM: &str = "alpheus/vault/random/v1";
/// Derives the key of one slot of a vault, from the vault's key and the slot's own (HKDF).
pub const VAULT_SLOT: &str = "alpheus/vault/slot/v1";
/// An owner states which controller guards a stream and which producer sends it (signature).
pub const PLACEMENT: &str = "alpheus/placement/v1";
/// An owner's id, from their public key (hash).
pub const OWNER: &str = "alpheus/owner/v2";
/// Derives a controller's signing key from its seed (HKDF).
pub const IDENTITY_SIGNING: &str = "alpheus/identity/signing/v1";
/// Derives a controller's agreement key from its seed (HKDF).
pub const IDENTITY_AGREEMENT: &str = "alpheus/identity/agreement/v1";
/// Derives the secret of a controller's self-masks from its seed (HKDF).
pub const IDENTITY_OWN: &str = "alpheus/identity/own/v1";
/// Derives the hybrid key for which master secrets are sealed, from a controller's seed (HKDF).
pub const IDENTITY_SEALING: &str = "alpheus/identity/sealing/v2";
/// Derives the secret from which a controller draws its noise, from its seed (HKDF).
pub const IDENTITY_NOISE: &str = "alpheus/identity/noise/v1";
/// Derives a consumer's signing key from its seed (HKDF).
pub const CONSUMER_SIGNING: &str = "alpheus/consumer/signing/v1";
/// Derives a consumer's agreement key from its seed (HKDF).
pub const CONSUMER_AGREEMENT: &str = "alpheus/consumer/agreement/v1";
/// Derives the seed of one window's share of noise from that noise secret (HKDF).
pub const NOISE_SHARE: &str = "alpheus/noise/share/v1";
/// Derives the hybrid key for which daily keys are sealed for a consumer, from its seed (HKDF).
pub const CONSUMER_SEALING: &str = "alpheus/consumer/sealing/v2";
/// An owner allows a consumer to read some days of a stream (signature).
pub const GRANT: &str = "alpheus/grant/v1";
/// Seals keys of a stream's days for such a consumer (hybrid HPKE).
pub const GRANT_DAYS: &str = "alpheus/grant/days/v2";
/// Derives the noise of one window's running totals from the noise secret (HKDF).
pub const NOISE_SEED: &str = "alpheus/noise/seed/v1";
/// A controller hands a stream over to another one (signature).
pub const HANDED_OVER: &str = "alpheus/handed-over/v1";
/// Seals a stream's master secret, and what its owner was charged, for the next controller (hybrid HPKE).
pub const CARRIED: &str = "alpheus/carried/v1";
/// Seals a stream's master secret for its controller (hybrid HPKE).
pub const MASTER: &str = "alpheus/master/v2";
/// H, the second base of the group (hash to element).
pub const SECOND_BASE: &str = "alpheus/group/second-base/v1";
/// The nonces of a proof, from randomness, witness and statement (hash).
pub const PROOF_NONCE: &str = "alpheus/proof/nonce/v1";
/// The challenge of proofs that are made jointly (hash to scalar).
pub const PROOF_JOINT: &str = "alpheus/proof/together/v1";
/// The seed of the weights of a batch of proofs (hash).
pub const PROOF_BATCH: &str = "alpheus/proof/batch/v1";
/// The weights of a batch of proofs (hash).
pub const PROOF_WEIGHTS: &str = "alpheus/proof/weights/v1";
/// The configuration that a deployment's holders, issuer and verifier share (signature).
pub const CREDENTIAL_CONFIGURATION: &str = "alpheus/credential/configuration/v2";
/// The public attribute m2 of a credential (hash to scalar).
pub const CREDENTIAL_ATTRIBUTES: &str = "alpheus/credential/attributes/v1";
/// T, the element of a context (hash to element).
pub const CREDENTIAL_CONTEXT: &str = "alpheus/credential/context/v1";
/// m1 and its blinding, from randomness (hash to scalar).
pub const CREDENTIAL_REQUEST_SECRETS: &str = "alpheus/credential/request-secrets/v1";
/// The blinding of an issued credential, from randomness, key and request (hash to scalar).
pub const CREDENTIAL_RESPONSE_SECRET: &str = "alpheus/credential/response-secret/v1";
/// The blinding of a presentation, from randomness and secrets (hash).
pub const CREDENTIAL_PRESENTATION_SECRETS: &str = "alpheus/credential/showing-secrets/v1";
/// The proof of a request for a credential (transcript).
pub const CREDENTIAL_REQUEST: &str = "alpheus/credential/request/v1";
/// The proof of an issued credential (transcript).
pub const CREDENTIAL_RESPONSE: &str = "alpheus/credential/response/v1";
/// Identifies a request that arrives again (hash).
pub const CREDENTIAL_REQUEST_DIGEST: &str = "alpheus/credential/asked/v1";
/// The proof of a presentation (transcript).
pub const CREDENTIAL_PRESENTATION: &str = "alpheus/credential/showing/v1";
/// The proof of a re-up (transcript).
pub const CREDENTIAL_RE_UP: &str = "alpheus/credential/re-up/v1";
/// The name of a spent tag (hash).
pub const CREDENTIAL_TAG: &str = "alpheus/credential/tag/v1";
/// Derives a holder's key for one session from its seed (HKDF).
pub const CREDENTIAL_SESSION_KEY: &str = "alpheus/credential/session-key/v1";
/// A holder binds a connection to a session (signature).
pub const CREDENTIAL_CONNECTION: &str = "alpheus/credential/connection/v1";
/// A holder ends a session (signature).
pub const CREDENTIAL_LOGOUT: &str = "alpheus/credential/logout/v1";
/// The name under which other shards hold a code's tags (hash).
pub const CREDENTIAL_CODE_HOLD: &str = "alpheus/credential/code-hold/v2";
/// F', to which presentations about a subject are bound (hash).
pub const CREDENTIAL_SUBJECT: &str = "alpheus/credential/subject/v1";
/// The proof that an open presentation's V is wrong (transcript).
pub const CREDENTIAL_REFUTATION: &str = "alpheus/credential/refutation/v1";
/// The base that shows that a secret of that proof is not zero (hash to element).
pub const CREDENTIAL_REFUTATION_BASE: &str = "alpheus/credential/refutation-base/v1";
/// The blinding of that proof, from randomness, key and presentation (hash to scalar).
pub const CREDENTIAL_REFUTATION_SECRET: &str = "alpheus/credential/refutation-secret/v1";
/// A gateway's challenge, which only the gateway checks (HMAC).
pub const PASS_CHALLENGE: &str = "alpheus/pass/challenge/v1";
/// What a holder signs to speak for a session: challenge and both agreement keys (hash).
pub const PASS_CONNECTION: &str = "alpheus/pass/connection/v1";
/// Derives the key for a session's requests from the agreed key (HKDF).
pub const PASS_REQUESTS: &str = "alpheus/pass/requests/v1";
/// A gateway confirms that it has the same key (HMAC).
pub const PASS_CONFIRMATION: &str = "alpheus/pass/confirmation/v1";
/// A request of a session (HMAC).
pub const PASS_REQUEST: &str = "alpheus/pass/request/v1";
/// Binds a code to a gate's nonce (hash).
pub const PASS_GATE: &str = "alpheus/pass/gate/v1";
/// Binds a code to an interval of ten seconds (hash).
pub const PASS_TIME: &str = "alpheus/pass/time/v1";
/// Names the content of a pass file that is locked under its passphrase's key.
pub const PASS_FILE: &str = "alpheus/pass/file/v1";
/// An account's name and secret, as the issuer stores them (hash).
pub const PASS_ACCOUNT: &str = "alpheus/pass/account/v1";
/// A deployment's public card (signature).
pub const PASS_CARD: &str = "alpheus/pass/card/v1";
/// What a token of RFC 9577 would be redeemed for: one epoch of a deployment (hash).
pub const PASS_REDEMPTION: &str = "alpheus/pass/redemption/v1";
/// Identifies a scan at a gate that arrives again (hash).
pub const PASS_SCAN: &str = "alpheus/pass/scan/v1";
/// The configuration that a board's parties and writers share (signature).
pub const BOARD_CONFIGURATION: &str = "alpheus/board/configuration/v3";
/// The public statement of a board's server about an epoch (signature).
pub const BOARD_STATEMENT: &str = "alpheus/board/statement/v4";
/// A database states that it has an accepted write (signature).
pub const BOARD_RECEIPT: &str = "alpheus/board/receipt/v2";
/// A member states that it sends this write in this epoch (signature).
pub const BOARD_TICKET: &str = "alpheus/board/ticket/v1";
/// The doorkeeper allows a writer with a pass to write once in this epoch (signature).
pub const BOARD_ADMISSION: &str = "alpheus/board/admitted/v1";
/// The doorkeeper of a board, and the issuer of the passes it admits (hash).
pub const BOARD_DOOR: &str = "alpheus/board/door/v1";
/// The keys of an epoch's permutations (hash).
pub const BOARD_PERMUTATIONS: &str = "alpheus/board/permutations/v1";
/// The databases' keys of an epoch, as a writer of mode 1 received them (hash).
pub const BOARD_BEGINS: &str = "alpheus/board/begins/v1";
/// Seals one server's key of a write (HPKE, hybrid).
pub const BOARD_ENVELOPE: &str = "alpheus/board/envelope/v3";
/// A write's envelopes and what accompanies them in the clear (hash).
pub const BOARD_SUBMISSION: &str = "alpheus/board/submission/v3";
/// What both keys of a write have in common (hash).
pub const BOARD_SHARED_PART: &str = "alpheus/board/shared/v1";
/// Derives roots, nonce, envelopes and lock of a write from the writer's seed (HKDF).
pub const BOARD_WRITE: &str = "alpheus/board/write/v2";
/// Derives a server's secrets of an epoch, one per purpose (HKDF).
pub const BOARD_EPOCH: &str = "alpheus/board/epoch/v2";
/// The writes that an audit covers (hash).
pub const BOARD_CANDIDATES: &str = "alpheus/board/candidates/v1";
/// κ, from both servers' contributions and what is audited (hash).
pub const BOARD_KAPPA: &str = "alpheus/board/kappa/v1";
/// Binds a server to its digests (hash).
pub const BOARD_DIGESTS: &str = "alpheus/board/digests/v2";
/// Binds a server to what it opens, in mode 2 (hash).
pub const BOARD_ANSWERS: &str = "alpheus/board/answers/v1";
/// What all databases have committed to and opened (hash).
pub const BOARD_OPENS: &str = "alpheus/board/opens/v1";
/// The agreed set (hash).
pub const BOARD_SET: &str = "alpheus/board/set/v1";
/// Derives the masks of both shares of a table from what the databases agreed on (HKDF).
pub const BOARD_MASK: &str = "alpheus/board/mask/v1";
/// Binds a server to its masked share (hash).
pub const BOARD_SHARE: &str = "alpheus/board/share/v1";
/// A published table (hash).
pub const BOARD_TABLE: &str = "alpheus/board/table/v1";
/// The checksum of a row's content (hash).
pub const BOARD_ROW: &str = "alpheus/board/row/v1";
/// The members who may write to a board (hash).
pub const BOARD_MEMBERS: &str = "alpheus/board/members/v1";
/// Identifies a root that has been opened before (hash).
pub const BOARD_ROOT: &str = "alpheus/board/seen-root/v1";
/// Binds a writer to one server's key, in mode 2 (hash).
pub const BOARD_KEY: &str = "alpheus/board/key/v1";
/// All of a write's bindings (hash).
pub const BOARD_KEYS: &str = "alpheus/board/keys/v1";
/// The part of a mode-2 write that all servers receive (hash).
pub const BOARD_COMMON: &str = "alpheus/board/common/v1";
/// Seals one server's part of a write of mode 2 (HPKE, hybrid).
pub const BOARD_PART: &str = "alpheus/board/part/v2";
/// Binds a write of mode 2 to its board, epoch and author (hash).
pub const BOARD_WRITE_BINDING: &str = "alpheus/board/bound/v1";
/// The points at which a write is audited, from its bindings (hash).
pub const BOARD_POINTS: &str = "alpheus/board/points/v1";
/// The positions at which proofs are opened, from what the servers have drawn (hash).
pub const BOARD_PLACE: &str = "alpheus/board/place/v1";
/// The base of a cell of a table that is kept in a group (hash to element).
pub const BOARD_BASE: &str = "alpheus/board/base/v1";
/// The weights of a column's elements in its proof (hash to scalar).
pub const BOARD_COLUMN: &str = "alpheus/board/column/v1";
/// The proof that all columns but one are zero (hash to scalar).
pub const BOARD_LINE: &str = "alpheus/board/line/v1";
/// The coin that chooses the database whose share the auditor checks.
pub const BOARD_DRAW: &str = "alpheus/board/draw/v1";
/// A database's message that reveals its keys of the accepted writes to the auditor.
pub const BOARD_REVEAL: &str = "alpheus/board/reveal/v3";
/// Those keys, sealed for the auditor.
pub const BOARD_REVEALED_KEYS: &str = "alpheus/board/revealed-keys/v1";
/// What the auditor derives from its seed of an epoch.
pub const BOARD_AUDITOR: &str = "alpheus/board/auditor/v2";
/// The lock of a write: only who knows what it was made from complains about a digest (hash).
pub const BOARD_COMPLAINT: &str = "alpheus/board/complaint/v1";
/// A writer's sign that it came, left where a write cannot be.
pub const BOARD_KNOCK: &str = "alpheus/board/knock/v1";
/// A board's public card (signature).
pub const BOARD_CARD: &str = "alpheus/board/card/v2";
/// Derives a table's secrets from the owner's key, one per purpose (HKDF).
pub const TABLE_KEY: &str = "alpheus/table/key/v2";
/// A table's public name, from its owner's key (HKDF).
pub const TABLE_DATA_SET: &str = "alpheus/table/data-set/v1";
/// Derives the key, and the name, of each saved state of a table (HKDF).
pub const TABLE_STATE: &str = "alpheus/table/state/v1";
/// c1 of a ciphertext, from its public seed (HKDF).
pub const TABLE_UNIFORM: &str = "alpheus/table/uniform/v1";
/// The random values of a ciphertext, from randomness, key and label (HKDF).
pub const TABLE_BLOCK: &str = "alpheus/table/block/v1";
/// The masks of one segment, epoch and kind of tag (HKDF).
pub const TABLE_MASK: &str = "alpheus/table/mask/v1";
/// Derives the secrets of a table in the paper's own scheme, one per purpose (HKDF).
pub const TABLE_PAIRING_KEY: &str = "alpheus/table/pairing-key/v1";
/// c1 of that scheme's ciphertexts, from a public seed (HKDF).
pub const TABLE_PAIRING_UNIFORM: &str = "alpheus/table/pairing-uniform/v1";
/// The random values of its ciphertexts, from randomness, key and label (HKDF).
pub const TABLE_PAIRING_BLOCK: &str = "alpheus/table/pairing-block/v1";
/// Its masks of inputs and of data sets (HKDF).
pub const TABLE_PAIRING_MASK: &str = "alpheus/table/pairing-mask/v1";
/// M, the base of the values in accountable statistics (hash to element).
pub const STATISTICS_MESSAGE_BASE: &str = "alpheus/statistics/message-base/v1";
/// The key and the interval for which tuples are proven and checked (hash).
pub const STATISTICS_TERMS: &str = "alpheus/statistics/terms/v1";
/// Binds a tuple to tag, aggregate and ephemeral key (hash).
pub const STATISTICS_BINDING: &str = "alpheus/statistics/binding/v2";
/// The blinding of a contribution, from randomness, contribution and binding (hash to scalar).
pub const STATISTICS_BLINDING: &str = "alpheus/statistics/blinding/v1";
/// The proof that a tuple is well-formed (transcript).
pub const STATISTICS_TUPLE: &str = "alpheus/statistics/tuple/v1";
/// The range proof of a tuple (transcript).
pub const STATISTICS_RANGE: &str = "alpheus/statistics/range/v1";
/// The statement to which a tuple's range proof is bound (hash).
pub const STATISTICS_RANGE_STATEMENT: &str = "alpheus/statistics/range-statement/v1";
/// Identifies a tuple that arrives again (hash).
pub const STATISTICS_TUPLE_DIGEST: &str = "alpheus/statistics/tuple-digest/v1";
/// The purpose of a generated key, and its committee (hash).
pub const STATISTICS_KEY_COMMITTEE: &str = "alpheus/statistics/key/committee/v1";
/// One attempt to generate a key, and the keys for which its shares are sealed (hash).
pub const STATISTICS_KEY_CEREMONY: &str = "alpheus/statistics/key/ceremony/v1";
/// Derives the key for which a member's shares are sealed in one attempt, from its seed (HKDF).
pub const STATISTICS_KEY_SEALING: &str = "alpheus/statistics/key/sealing/v1";
/// Binds a dealer to its dealing (hash).
pub const STATISTICS_KEY_PLEDGE: &str = "alpheus/statistics/key/pledge/v1";
/// A dealer's polynomial, from randomness (hash to scalar).
pub const STATISTICS_KEY_COEFFICIENT: &str = "alpheus/statistics/key/coefficient/v1";
/// Seals a member's share of a dealing (HPKE).
pub const STATISTICS_KEY_SHARE: &str = "alpheus/statistics/key/share/v1";
/// The proof that a dealer knows what it deals (transcript).
pub const STATISTICS_KEY_DEALING: &str = "alpheus/statistics/key/dealing/v1";
/// All messages of a key's generation (hash).
pub const STATISTICS_KEY_TRANSCRIPT: &str = "alpheus/statistics/key/transcript/v1";
/// The proof of a partial decryption (transcript).
pub const STATISTICS_PARTIAL: &str = "alpheus/statistics/partial/v1";
/// The configuration that operator, smoothers, aggregator and clients share (signature).
pub const STATISTICS_CONFIGURATION: &str = "alpheus/statistics/configuration/v2";
/// A smoother signs an aggregate's definition (signature).
pub const STATISTICS_DEFINITION: &str = "alpheus/statistics/definition/v2";
/// The purpose of a generated key: a key epoch of a deployment (hash).
pub const STATISTICS_DAY: &str = "alpheus/statistics/day/v1";
/// A smoother signs a key epoch's public keys (signature).
pub const STATISTICS_CARD: &str = "alpheus/statistics/card/v1";
/// The operator signs a deployment's card (signature).
pub const STATISTICS_CARD_FILE: &str = "alpheus/statistics/card-file/v1";
/// A party's statement which certificate is its own.
pub const STATISTICS_MEMBERSHIP: &str = "alpheus/statistics/membership/v1";
/// A smoother's message during a key's generation (signature).
pub const STATISTICS_KEY_WORD: &str = "alpheus/statistics/key/word/v1";
/// A smoother votes for a key (signature).
pub const STATISTICS_KEY_VOTE: &str = "alpheus/statistics/key/vote/v1";
/// The key that is voted for (hash).
pub const STATISTICS_KEY_DIGEST: &str = "alpheus/statistics/key/shared/v1";
/// The request for which a slot credential is presented (hash).
pub const STATISTICS_REQUEST: &str = "alpheus/statistics/request/v1";
/// A slot's keeper grants the slot to a key (signature).
pub const STATISTICS_GRANT: &str = "alpheus/statistics/grant/v1";
/// The upload for which a credential is presented (hash).
pub const STATISTICS_UPLOAD: &str = "alpheus/statistics/upload/v1";
/// An upload, as ledgers identify it (hash).
pub const STATISTICS_CONTENT: &str = "alpheus/statistics/content/v1";
/// The presentation in an upload, so that smoothers need not see it (hash).
pub const STATISTICS_PRESENTATION: &str = "alpheus/statistics/showing/v1";
/// Seals an upload for the aggregator (HKDF).
pub const STATISTICS_UPLOAD_SEALING: &str = "alpheus/statistics/sealed/v2";
/// The aggregator's key that uploads are sealed for, from a seed (hash to scalar).
pub const STATISTICS_RECIPIENT: &str = "alpheus/statistics/recipient/v1";
/// The aggregator discloses what opens one upload (transcript).
pub const STATISTICS_DISCLOSURE: &str = "alpheus/statistics/disclosed/v1";
/// The rejection for which a presentation is refuted (hash).
pub const STATISTICS_REJECTION: &str = "alpheus/statistics/rejected/v1";
/// A slot's ephemeral key deposits an upload (transcript).
pub const STATISTICS_DEPOSIT: &str = "alpheus/statistics/deposit/v3";
/// The sealed part of an entry (hash).
pub const STATISTICS_DEPOSIT_CONTENT: &str = "alpheus/statistics/deposited/v2";
/// A smoother signs an entry of the ledger of slots (signature); also the entry's leaf (hash).
pub const STATISTICS_ENTRY: &str = "alpheus/statistics/entry/v2";
/// A leaf under the root of all tuples (hash).
pub const STATISTICS_TUPLE_LEAF: &str = "alpheus/statistics/counted/v2";
/// The aggregator signs both roots of an aggregate (signature).
pub const STATISTICS_CLOSING: &str = "alpheus/statistics/closing/v1";
/// A smoother would decrypt this set and no other (signature).
pub const STATISTICS_READY: &str = "alpheus/statistics/ready/v1";
/// A smoother signs a part of a decryption (signature).
pub const STATISTICS_OPENING: &str = "alpheus/statistics/opening/v1";
/// A smoother states how an aggregate ended (signature).
pub const STATISTICS_OUTCOME: &str = "alpheus/statistics/outcome/v2";
/// A client's key for one upload, from a seed (hash to scalar).
pub const STATISTICS_EPHEMERAL: &str = "alpheus/statistics/ephemeral/v2";
/// The operator signs a pure count (signature).
pub const STATISTICS_TALLY: &str = "alpheus/statistics/tally/v1";
