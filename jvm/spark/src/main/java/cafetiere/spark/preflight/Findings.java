// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.preflight;

import cafetiere.core.CafetiereException;
import cafetiere.spark.PreflightException;
import cafetiere.spark.util.ModelPart;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/** Collects what several checks refuse, so that all of it is told at once. */
public final class Findings {
  private final List<String> found = new ArrayList<>();

  /** The value of a part, or null if it was refused. */
  public <T> T of(Supplier<T> part) {
    try {
      return part.get();
    } catch (PreflightException e) {
      found.addAll(e.findings());
    } catch (CafetiereException e) {
      found.add(e.getMessage());
    }
    return null;
  }

  /** What is in the file that a param names, null if it is "" or the file was refused. */
  public ModelPart file(String param, String path, Supplier<ModelPart> read) {
    try {
      return path.isEmpty() ? null : read.get();
    } catch (UncheckedIOException | IllegalArgumentException e) {
      found.add(e.getMessage() + ": set " + param + " to a file that the driver can read, such as"
          + " hdfs:///models/" + (param.equals("weights") ? "net.caffemodel" : "net.solverstate"));
    }
    return null;
  }

  public void add(List<String> more) {
    found.addAll(more);
  }

  public boolean isEmpty() {
    return found.isEmpty();
  }

  /** Throws a {@link PreflightException} if there is anything. */
  public void refuse() {
    if (!found.isEmpty()) throw new PreflightException(found);
  }
}
