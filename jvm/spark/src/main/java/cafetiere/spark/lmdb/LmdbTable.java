// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.lmdb;

import cafetiere.spark.util.NearestName;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The databases at a path, and how they are read or written.
 *
 * @param path a folder with data.mdb, that file, or a folder of such folders
 * @param partitions as many ranges of keys; 0 for as many as their size asks for
 * @param raw whether the columns are key and value, whatever the values are
 * @param isByPixel whether raw images lie pixel by pixel in their column, not channel by channel
 */
record LmdbTable(String path, int partitions, boolean raw, boolean isByPixel)
    implements SupportsRead {
  private static final List<String> OPTIONS = List.of("path", "partitions", "raw", "layout");
  private static final List<String> LAYOUTS = List.of("chw", "hwc");

  /** Reads the options, and refuses what it does not understand. */
  static LmdbTable of(CaseInsensitiveStringMap options) {
    for (String name : options.keySet()) {
      if (OPTIONS.contains(name)) continue;
      throw new IllegalArgumentException(NearestName.noOption("lmdb", name, OPTIONS));
    }
    String path = options.get("path");
    if (path == null) throw new IllegalArgumentException("lmdb needs one path");
    String layout = options.getOrDefault("layout", "chw");
    if (!LAYOUTS.contains(layout)) {
      throw new IllegalArgumentException("lmdb's option layout is \"" + layout
          + "\": set it to \"chw\" (channel by channel) or \"hwc\" (pixel by pixel)");
    }
    return new LmdbTable(
        path, partitions(options), options.getBoolean("raw", false), layout.equals("hwc"));
  }

  private static int partitions(CaseInsensitiveStringMap options) {
    String text = options.getOrDefault("partitions", "");
    if (text.isEmpty()) return 0;
    try {
      int number = Integer.parseInt(text);
      if (number > 0) return number;
    } catch (NumberFormatException e) {
      // Told below, in the same words as a number that is too small.
    }
    throw new IllegalArgumentException(
        "lmdb's option partitions is \"" + text + "\": a whole number of at least 1 is needed");
  }

  @Override
  public String name() {
    return "lmdb " + path;
  }

  @Override
  @SuppressWarnings("deprecation") // what takes its place calls it
  public StructType schema() {
    return LmdbColumn.schema(raw);
  }

  @Override
  public Set<TableCapability> capabilities() {
    return Set.of(TableCapability.BATCH_READ);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new LmdbScan(this);
  }
}
