// What the job needs besides, if each tick has a frame.
package alpheus.flink;

import java.io.Serializable;

/**
 * What the job needs besides, if each tick has a frame. It names a folder: secrets are not in the job's
 * graph, which Flink stores.
 *
 * @param anchor sum and number of events start again at its multiples, in microseconds
 * @param identity the folder with the deployment's file and the service's ingest keys
 */
public record TickMode(long anchor, String identity) implements Serializable {}
