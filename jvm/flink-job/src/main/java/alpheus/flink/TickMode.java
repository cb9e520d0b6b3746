// What the job needs besides, if each tick has a frame.
package alpheus.flink;

import java.io.Serializable;
import java.util.List;

/**
 * What the job needs besides, if each tick has a frame. It names files: secrets are not in the job's graph,
 * which Flink stores.
 *
 * @param anchor sum and number of events start again at its multiples, in microseconds
 * @param deployment the deployment's file
 * @param certificates of the service's ingest keys, the current one and retired ones that devices may have
 * @param seeds the seeds of these keys, in the same order
 */
public record TickMode(long anchor, String deployment, List<String> certificates, List<String> seeds)
        implements Serializable {}
