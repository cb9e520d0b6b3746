// The finest buckets in which an attribute may be released.
package alpheus.schema;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * The finest buckets in which an attribute may be released: of one width, or with edges.
 *
 * @param attribute position of the attribute
 * @param width buckets of this scaled width from the grid's first edge; 0 if there are edges
 * @param edges explicit lower edges; empty if there is a width
 */
public record Generalise(int attribute, long width, List<Long> edges) {
    /**
     * Whether it is no coarser than the grid's own bins.
     *
     * @param grid the grid
     * @return true if so
     */
    public boolean isAsFineAs(Edges grid) {
        return groups(grid).filter(starts -> starts.size() == grid.bins()).isPresent();
    }

    /**
     * The first cell of each bucket over the grid's cells.
     *
     * @param grid the grid
     * @return empty if the buckets are not on the grid or do not start where it starts
     */
    public Optional<List<Integer>> groups(Edges grid) {
        Optional<List<Integer>> starts = edges.isEmpty() ? ofWidth(grid) : ofEdges(grid);
        return starts.filter(found -> !found.isEmpty() && found.get(0) == 0);
    }

    private Optional<List<Integer>> ofWidth(Edges grid) {
        if (!(grid instanceof Edges.Uniform uniform) || width % uniform.width() != 0
                || width / uniform.width() <= 0) {
            return Optional.empty();
        }
        long step = width / uniform.width();
        List<Integer> starts = new ArrayList<>();
        for (long start = 0; start < uniform.count(); start += step) {
            starts.add((int) start);
            if (step > uniform.count()) {
                break;
            }
        }
        return Optional.of(starts);
    }

    private Optional<List<Integer>> ofEdges(Edges grid) {
        List<Integer> starts = new ArrayList<>();
        for (long edge : edges) {
            int cell = grid.cellAt(edge);
            if (cell < 0) {
                return Optional.empty();
            }
            starts.add(cell);
        }
        return Optional.of(starts);
    }
}
