//! The list: for each kind its id, what happened, why, and how to fix it.

macro_rules! errors {
    ($($name:ident $id:literal $what:literal $why:literal $fix:literal;)+) => {
        /// A kind of failure that people can act on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ErrorId {
            $(#[doc = $what] $name,)+
        }

        impl ErrorId {
            /// All kinds, those of one part beside each other.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The id that is printed. It does not change between versions.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self { $(Self::$name => $id,)+ }
            }

            /// What happened.
            #[must_use]
            pub const fn what(self) -> &'static str {
                match self { $(Self::$name => $what,)+ }
            }

            /// Why it is a failure.
            #[must_use]
            pub const fn why(self) -> &'static str {
                match self { $(Self::$name => $why,)+ }
            }

            /// What to do about it.
            #[must_use]
            pub const fn fix(self) -> &'static str {
                match self { $(Self::$name => $fix,)+ }
            }
        }
    };
}

errors! {
    CommandLine "command-line"
        "The command line is wrong."
        "A flag or an argument is missing, unknown, or has a value that the command does not take. Nothing was done."
        "Read the message, then the command's `--help`: it lists all flags and has examples to paste.";
    SettingWrong "setting-wrong"
        "A setting has a value that cannot be used, or does not exist."
        "Settings come from flags, from variables that begin with `ALPHEUS_`, and from the file of `--config`. The message names the one that decided."
        "Correct the value in the place that the message names. A flag overrides a variable, and a variable overrides the file.";
    SettingMissing "setting-missing"
        "A setting that the command needs is not set."
        "Without it the command does not know which files, keys or servers to use."
        "Set it as a flag, as a variable (`ALPHEUS_` and its name in capitals), or in the file of `--config`.";
    CheckFailed "check-failed"
        "The command ran, and what it checked does not hold."
        "Something that others sent or stored is not what it must be, or a result is not what was expected: for example, no window of a recording opened, since too few owners had data. The message says what."
        "If no window opened, ask for longer windows or bring data of more owners. Otherwise find out who wrote what was checked, and do not use the result until the cause is known.";
    Interrupted "interrupted"
        "The command stopped early, because it was asked to."
        "Ctrl-C or SIGTERM reached it before its end. It stopped cleanly."
        "Run it again. If it has `--state`, it continues where it stopped.";
    MustGuess "must-guess"
        "The command would have to guess something that matters."
        "The input can mean two things, and the choice changes results, or what people agree to."
        "Read the questions that it printed. Answer each with the flag that it names, such as `--owner` or `--day-first`, or correct the file. With `--yes`, the best guess is written but not run: edit the key that a question is about, such as `time`, `zone` or `missing` in source.yaml, or `min` and `max` in schema.yaml, and run the command in README.md.";
    FileMissing "file-missing"
        "A file or folder does not exist."
        "The path is wrong, or an earlier step that makes the file has not run."
        "Check the path that the message names. Paths are relative to the folder in which the command runs.";
    FileExists "file-exists"
        "A file or folder already exists."
        "Keys, ledgers and results are never overwritten, because what is lost may be the only copy."
        "Name another path, or remove the old one if you are sure that nobody needs it.";
    FileNotPermitted "file-not-permitted"
        "The system does not let this user read or write a file."
        "The file or its folder belongs to another user, or its permissions are narrower."
        "Run the command as the user who owns the file, or change the permissions of the file.";
    FileOpenToOthers "file-open-to-others"
        "Other users of this machine can read a secret file."
        "Anyone who reads a key file, or the sizes in a private folder, learns what it protects."
        "Run `chmod 600` on the file, or `chmod 700` on the folder. Replace the key if somebody may have read it.";
    FileNotText "file-not-text"
        "A file is not text in UTF-8."
        "Files that people write are read as UTF-8. The file is compressed, or in another encoding."
        "Decompress it, or save it again as UTF-8.";
    DiskFull "disk-full"
        "The disk is full."
        "Data that must be durable before it leaves the process cannot be written."
        "Free some space, then run the command again: nothing that was confirmed is lost.";
    IoFailed "io-failed"
        "The system could not read or write something."
        "A disk, a pipe or a connection failed. The message quotes the system's error."
        "Check the disk and the path that the message names, then run the command again.";
    FileInvalid "file-invalid"
        "A file cannot be understood."
        "Its content does not have the form that the command expects. The message says where."
        "Correct the place that the message names. `alpheus check FILE` checks files that people write.";
    SchemaInvalid "schema-invalid"
        "A schema is not valid."
        "A key is unknown, a bound is missing, or what it declares does not fit into words of 64 bits."
        "Correct the line that the message names, then run `alpheus check` on the file.";
    PoliciesInvalid "policies-invalid"
        "A file of policies is not valid."
        "It chooses an option or an attribute that the schema does not offer, or a number is out of range."
        "Correct the line that the message names. `alpheus query` with a DESCRIBE statement lists the options.";
    SourceInvalid "source-invalid"
        "A source file does not fit its schema."
        "It must say for each attribute of the schema which column holds it, and which columns hold time and stream."
        "Correct what the message names, then run `alpheus check` on the schema and the source file.";
    RecordingInvalid "recording-invalid"
        "A recording cannot be read."
        "Its header does not have the columns that the source file names, or the file ends early."
        "Compare the first line of the recording with the source file. Give the complete file.";
    RecordingEmpty "recording-empty"
        "No row of a recording can be used."
        "There is no row after the header, or every row was refused."
        "Read the reasons above the message. Correct the rows, or the schema and source file that describe them.";
    LineRefused "line-refused"
        "A line of input is not a valid event."
        "A value is missing, is not of its type, or is outside the bounds that the schema declares."
        "Correct the line, or widen the bounds in a new version of the schema. Other lines are not affected.";
    ContractInvalid "contract-invalid"
        "A data contract cannot be turned into a schema and policies."
        "Its standard is not known, or something is missing without which nothing can be released."
        "Add to the contract what the message names. The guide to standards lists what is supported.";
    QuerySyntax "query-syntax"
        "A query is not a statement that Alpheus reads."
        "A word is misspelt, or is in the wrong place. The message points to it."
        "Correct the word. The reference of the query language lists every clause with an example.";
    QueryUnknownName "query-unknown-name"
        "A query names something that does not exist."
        "The schema, attribute, metadata or value is misspelt, or the schema has another version."
        "Use the name that the message suggests. SHOW SCHEMAS and DESCRIBE list all names.";
    QueryNotOffered "query-not-offered"
        "A query asks for a statistic that the schema does not encode."
        "The schema determines what devices encrypt: a statistic that is not encoded cannot be computed later."
        "Ask for one that the message lists, or add it to `aggregations` in a new version of the schema.";
    QueryBins "query-bins"
        "A query asks for bins that the schema cannot provide."
        "Bins are encoded when the device encrypts, so they can be joined but not split."
        "Use edges that the schema encodes; DESCRIBE shows them.";
    QueryWindow "query-window"
        "The window of a query does not fit the tick of the schema."
        "Devices add events up over a tick and send the sum, so a window can end only at a tick."
        "Use a window that is a multiple of the tick.";
    QueryNoise "query-noise"
        "A query asks for noise in a way that protects nobody."
        "Noise needs an epsilon, and statistics whose change by one person is bounded."
        "Set epsilon with WITH, and ask for counts, sums or histograms of bounded attributes.";
    QueryNameTaken "query-name-taken"
        "A query of this name is already running."
        "Results are read by the name of their query, so two cannot share one."
        "Choose another name, or stop the running one with DROP STREAM.";
    QueryNoStreams "query-no-streams"
        "No stream fits the query."
        "No owner has a stream of this schema, or none matches the conditions on metadata."
        "Remove conditions, or wait until owners have added streams. SHOW STREAMS counts them.";
    QueryTooLarge "query-too-large"
        "A query asks for more than the schema can hold."
        "The population or the number of streams is above the capacity that the schema declares."
        "Ask for fewer, or declare a larger capacity in a new version of the schema.";
    QueryTooMany "query-too-many"
        "A consumer has as many running queries as one may have."
        "Each running query reserves attributes of streams, which no other query can release in the meantime, and needs work for each window."
        "Stop one with DROP STREAM, or ask the operator for a larger `queries-per-consumer`.";
    StreamQuota "stream-quota"
        "A stream has already sent as much as it may send in a day."
        "Devices' frames stay on the service's disk for the whole retention period. Without a limit, one device could fill the disk."
        "Wait: the device keeps the remaining frames, and sends them once the quota allows it. If it should send more, such as a long recording, ask the operator for a larger `stream-megabytes`. If it should not, find out who uses its identity.";
    QueryReader "query-reader"
        "Results would be sealed to a consumer other than the one asking."
        "RELEASE TO needs the certificate of the consumer, which only its own identity shows."
        "Send the query with that consumer's identity folder.";
    PolicyForbidsPrivate "policy-forbids-private"
        "Owners keep an attribute private."
        "They chose that nothing is released of it, to nobody."
        "Ask for other attributes. Only the owners can change this.";
    PolicyForbidsWindow "policy-forbids-window"
        "The window of a query is finer than owners allow."
        "Their policy names the shortest window; others must be multiples of it."
        "Use the window that the message names, or the nearest query that it shows.";
    PolicyForbidsPrecision "policy-forbids-precision"
        "A query asks for finer values than owners allow."
        "Their policy releases the attribute only in buckets."
        "Use the buckets that the message names, or the nearest query that it shows.";
    PolicyForbidsConsumer "policy-forbids-consumer"
        "Owners release an attribute only to certain consumers."
        "Their policy names who may receive results, sealed to the consumer's key."
        "Ask as one of these consumers, and add RELEASE TO.";
    PolicyForbidsPopulation "policy-forbids-population"
        "Too few owners would be in the result."
        "Policies set the smallest crowd of owners that one of them can hide in, even if some controllers collude."
        "Wait for more owners, spread them over more controllers, or use the nearest query that the message shows.";
    PolicyForbidsMaximum "policy-forbids-maximum"
        "The query's upper limit of owners is below the minimum that policies require."
        "The second number of BETWEEN is the most owners that take part in the whole query. Others are left out of all windows, even of those that have too few owners."
        "Raise the second number of BETWEEN.";
    PolicyForbidsEpsilon "policy-forbids-epsilon"
        "A query would cost more privacy budget than owners allow."
        "Each release with noise costs an epsilon (and perhaps a delta), and their policy limits it."
        "Use a smaller epsilon, longer windows or mechanism = 'laplace', as the message says.";
    PolicyRequiresNoise "policy-requires-noise"
        "Owners release an attribute only with noise."
        "They chose dp-aggregate: exact results would reveal more than they agreed to."
        "Add WITH (epsilon = …) to the query.";
    PolicyReleasedOnce "policy-released-once"
        "Another running query already releases the attribute."
        "Two results over the same data could be subtracted from each other."
        "Read the results of the running query, or stop it with DROP STREAM.";
    PolicyForbids "policy-forbids"
        "A policy forbids the request."
        "The result would reveal more than its owners agreed to. The message names the rule."
        "Use the nearest query that the message shows. Only the owners can allow more.";
    MasksUnsafe "masks-unsafe"
        "No masks are safe among these controllers."
        "So many of them may collude that the rest cannot hide one another."
        "Use more controllers, or policies with a smaller alpha.";
    ServerUnreachable "server-unreachable"
        "A server does not answer."
        "The address is wrong, the process is not running, or a network or proxy blocks the connection."
        "Check that the process runs and that the address is the one that it printed. Most commands can be repeated safely.";
    ServerBusy "server-busy"
        "A server cannot answer now."
        "It is stopping, is overloaded, or waits for another process."
        "Try again in a while. If it stays busy, look at its `/healthz`.";
    ServerFailed "server-failed"
        "A server failed while it worked on the request."
        "Something went wrong on its side; details are only in its log."
        "Ask its operator to look at the log. Repeating the request does no harm.";
    ServerOtherVersion "server-other-version"
        "An answer does not have the form that this version understands."
        "The two programs are of different versions, or the address leads to something else."
        "Check the address, and run the same version of Alpheus on both sides.";
    RequestRefused "request-refused"
        "The request is refused."
        "It breaks a rule of a server, of owners' policies or of the data; the message says which."
        "Change what the message names. If a `help:` line follows, it says what is possible instead.";
    NotFound "not-found"
        "The requested thing does not exist at the server."
        "The name or number is wrong, or the thing was removed."
        "List what there is with SHOW, `owner streams` or the like, and use a name from there.";
    RoleForbidden "role-forbidden"
        "The identity has the wrong role for the request."
        "A certificate names one role: owner, producer, controller, consumer and so on. Each may do different things."
        "Use the identity folder of the right role; `alpheus ca issue --role` makes one.";
    IdentityInvalid "identity-invalid"
        "An identity folder, or a certificate in it, cannot be used."
        "Files are missing, corrupted or for another deployment."
        "Issue the identity again with `alpheus ca issue`, or copy the folder completely.";
    CertificateRefused "certificate-refused"
        "A certificate is not accepted."
        "It has expired, was revoked, or comes from another authority."
        "Have it issued again by the authority of this deployment.";
    WrongPeer "wrong-peer"
        "The other end of a connection is not the expected party."
        "Its certificate names another role or process. Someone may be intercepting the connection, or the address is wrong."
        "Check the address. If it is right, do not continue, and inform the operator.";
    ClockWrong "clock-wrong"
        "The machine's clock shows a time at which the process does not start."
        "That time is before this program was built, or its certificate is not valid at that time. With a wrong time, the process would delete data that is not old, or wait for years."
        "Set the clock (`timedatectl set-ntp true`). If it is right, renew the certificate: `alpheus ca renew`. Then start again.";
    AddressInUse "address-in-use"
        "A server cannot listen at its address."
        "Another process uses the port, or the address does not belong to this machine."
        "Choose another address, or stop the other process. Port 0 takes any free one.";
    UrlInvalid "url-invalid"
        "The address of a server or a proxy is not of the right form."
        "Servers are given as `https://host:port`, a proxy as `socks5h://host:port`."
        "Correct the address.";
    StateDamaged "state-damaged"
        "The state of a process is corrupted or incomplete."
        "A ledger, a key store or a log does not contain what it must. The process does not guess."
        "Restore the state folder from a backup, as the guide to operating describes.";
    BackupInvalid "backup-invalid"
        "A backup cannot be used."
        "It is cut short, was changed, is something else, or was made with another key file."
        "Take another backup, or the key file that it was made with. `alpheus backup verify` checks one.";
    StateOld "state-old"
        "The state of a process is older than what it has done."
        "A backup was restored, or a file was lost. Acting on old state could release something twice."
        "Restore the latest state, or restart the deployment as the message says.";
    StateOtherFormat "state-other-format"
        "The state was written by another version."
        "Its format is one that this version does not read."
        "Use the version that wrote it, or hand over to a new state as the changelog describes.";
    StateInUse "state-in-use"
        "Another process uses the state."
        "Two processes on one state would contradict each other."
        "Stop the other process, or name another state folder.";
    StateOfOther "state-of-other"
        "The state belongs to something else."
        "It was made for another run, table, board or deployment."
        "Name another folder, or use the files and flags that it was made with.";
    KeyWrong "key-wrong"
        "A key does not open what it should."
        "The key file, passphrase or seed is not the one that it was locked with."
        "Use the original key. Without it, what is locked is lost.";
    CardInvalid "card-invalid"
        "The card of a deployment is not valid, or is for another one."
        "A card pins keys and addresses, and is signed. It was changed, or is of another version or kind."
        "Get the card again from the operator, and compare its fingerprint.";
    DemoUnmet "demo-unmet"
        "A step of the demo did not end as announced."
        "With `--check`, each result is compared with the plaintext. Something does not work on this machine."
        "Report it, with what the demo printed.";
    PopulationShort "population-short"
        "The recording has too few owners for its query."
        "A crowd needs as many owners as the query and the policies say."
        "Give a recording with more owners, or lower the first number of BETWEEN if policies allow it.";
    PassRefused "pass-refused"
        "A pass, code or credential was refused or could not be obtained."
        "The account has none left for this period, the token of the provider is not accepted, or a code was used before."
        "Read the reason. There is one pass for each period, and each code works once.";
    PassMissing "pass-missing"
        "There is no pass for this period."
        "A pass is fetched from the issuer, once for each period."
        "Run `alpheus pass fetch` first.";
    PassfileInvalid "passfile-invalid"
        "The pass file cannot be used."
        "It is corrupted, of another version, or an older copy."
        "Use the latest copy. If there is none, fetch new passes in the next period.";
    BoardNotWritten "board-not-written"
        "A message was not published on the board, or nobody knows yet."
        "A server did not confirm it in time, or the epoch ended without it."
        "Run the command again with the same files: it continues, and never writes twice in an epoch.";
    BoardEntry "board-entry"
        "The board does not let this writer in."
        "It needs a member's key or a pass of the right kind for this epoch."
        "Use the key or the pass that the board's card names.";
    BoardMessage "board-message"
        "The message does not fit on the board."
        "Rows of a board have a fixed length, and an empty message looks like none."
        "Shorten it, or split it over several epochs.";
    BoardDisagrees "board-disagrees"
        "Servers of the board contradict each other or themselves."
        "They have signed statements that do not agree, or a table that does not follow from them."
        "Do not rely on the table. Keep what was downloaded, and inform the operators.";
    StatsNotCounted "stats-not-counted"
        "A sample was not counted, or a result is missing."
        "Too few contributed, a server was away, or the release ended without it."
        "Read the reason. Samples of later times are not affected.";
    StatsRefused "stats-refused"
        "A contribution or registration was refused."
        "The quota is used up, the sample is out of range, or a party does not accept what was sent."
        "Read the reason. A quota is available again in its next period.";
    StatsSmoothers "stats-smoothers"
        "Too few smoothers answer, or they do not agree."
        "A quorum of them must say the same before anything is decrypted."
        "Check that all smoothers run and have the same definition.";
    StatsDefinition "stats-definition"
        "A definition, plan or key of accountable statistics is not valid."
        "It breaks a limit, is not signed by the operator, or belongs to another deployment."
        "Correct what the message names, or ask the operator.";
    TableQuery "table-query"
        "A query over an encrypted table cannot be answered."
        "It uses a clause or a column that the table does not have, or needs more precision than its parameters allow."
        "Use what the message lists. EXPLAIN shows the margin of each part.";
    TableFile "table-file"
        "A file does not fit the table."
        "Its columns are not those of the table's schema, a row is repeated, or a value is out of bounds."
        "Correct the line that the message names.";
    TableSchema "table-schema"
        "The schema of a table is not valid."
        "A column, a bound or a group is wrong, or a change is not one that a table can make."
        "Correct what the message names.";
    TableUnverified "table-unverified"
        "The server's answer is wrong."
        "It does not follow from the rows that the owner appended. The server has lost data, or lies."
        "Do not use the answer. Restore the server's data, or recreate the table from its sources.";
    TableState "table-state"
        "The owner's state of a table cannot be used."
        "It is missing, older than what the server holds, or was continued from two copies."
        "Use the latest state, or `alpheus table recover` as the message says.";
    InternalError "internal-error"
        "There is a bug in the program."
        "A part of it stopped unexpectedly."
        "Report it with the version and what was run. Restarting is safe: state is written before messages leave.";
}
