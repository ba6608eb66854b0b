// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.rounds;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.Rows;
import cafetiere.spark.BothLines;
import cafetiere.spark.TestImages;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.internal.SparkInternals;
import java.io.IOException;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.storage.StorageLevel;
import org.apache.spark.util.LongAccumulator;
import org.junit.jupiter.api.Test;
import scala.Option;

/** The native memory that dealing rows takes, also where a task ends early. */
class RoundsRowsTest {
  private static final int TASKS = 300;
  private static final long TOLERATED_KIB = 100 << 10;

  @BothLines
  @Test
  void aTaskThatEndsEarlyLeavesNoMemory() throws IOException {
    FeedSchema schema = schema();
    List<InternalRow> row = List.of(SparkInternals.rows(
        schema.select(TestImages.images(TestImages.session(), 1))).toJavaRDD().first().copy());
    long before = mappedKib();
    for (int task = 0; task < TASKS; task++) {
      TaskContextImpl context = TaskContext$.MODULE$.empty();
      TaskContext$.MODULE$.setTaskContext(context);
      try {
        new RoundsRows.KeyedRows(schema, 1, row.iterator());
      } finally {
        context.markTaskCompleted(Option.empty());
        TaskContext$.MODULE$.unset();
      }
    }
    long grown = mappedKib() - before;
    assertTrue(grown < TOLERATED_KIB, "grew by " + grown + " KiB in " + TASKS + " tasks");
  }

  @Test
  void chunksTakeNoDirectBuffers() {
    BufferPoolMXBean direct =
        ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
            .filter(pool -> pool.getName().equals("direct")).findFirst().orElseThrow();
    int pixels = TestImages.SIDE * TestImages.SIDE;
    ByteBuffer row = ByteBuffer.allocate(Integer.BYTES + 3 * Integer.BYTES + 8 + 4 + pixels);
    row.putInt(1).order(java.nio.ByteOrder.LITTLE_ENDIAN);
    row.putInt(pixels).put(new byte[pixels]).putInt(4).putInt(3).putInt(8).putLong(7);
    try (Rows rows = new Rows(schema().toJson().toString())) {
      long before = direct.getTotalCapacity();
      RoundsRows.append(row.array(), rows);
      assertEquals(1, rows.count());
      assertEquals(before, direct.getTotalCapacity());
    }
  }

  /** As when a fit is cancelled before its first round: rows that nobody has asked for are not computed. */
  @Test
  void aStageThatHasNotRunComputesNoRowsToClose() {
    SparkContext sc = TestImages.session().sparkContext();
    LongAccumulator computed = sc.longAccumulator();
    JavaRDD<byte[]> rows = JavaSparkContext.fromSparkContext(sc)
        .parallelize(List.of(new byte[0]), 1).map(row -> {
          computed.add(1);
          return row;
        });
    RoundsCell.Setup setup = new RoundsCell.Setup("{}", schema(), 1, false, "", "", null, null, 0);
    new RoundsStage(JavaSparkContext.fromSparkContext(sc), setup, null, 1, rows, null).close();
    assertEquals(0, computed.value());
    assertEquals(StorageLevel.NONE(), rows.getStorageLevel());
  }

  private static FeedSchema schema() {
    return FeedSchema.of(TestImages.SCHEMA, List.of(new FeedSchema.Input("data", "image"),
        new FeedSchema.Input("label", "label")), "id");
  }

  private static long mappedKib() throws IOException {
    String line = Files.readAllLines(Path.of("/proc/self/status")).stream()
        .filter(text -> text.startsWith("VmSize:")).findFirst().orElseThrow();
    return Long.parseLong(line.replaceAll("\\D", ""));
  }
}
