// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.keyed;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import cafetiere.spark.TestNets;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.predict.OutputColumns;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.DoubleAccumulator;
import org.apache.spark.util.LongAccumulator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import scala.Option;

/** Rows that another thread of a task asks for when the task has ended, as one that feeds a worker does. */
class TaskEndTest {
  /** More than a batch. */
  private static final int ROWS = 600;
  /** A caffemodel with a name ("x") and no layers. */
  private static final byte[] NO_WEIGHTS = {0x0a, 1, 'x'};

  private final TaskContextImpl context = TaskContext$.MODULE$.empty();

  @BeforeEach
  void begin() {
    TaskContext$.MODULE$.setTaskContext(context);
  }

  @AfterEach
  void unset() {
    TaskContext$.MODULE$.unset();
  }

  @Test
  void noMoreRowsAreScored() {
    StructType table = new StructType().add("x", DataTypes.createArrayType(DataTypes.FloatType));
    StructType met = new StructType().add("key", DataTypes.LongType).add("isRow", DataTypes.BooleanType)
        .add("classes", DataTypes.createArrayType(DataTypes.StringType)).add("net", DataTypes.StringType)
        .add("weights", DataTypes.BinaryType).add("row", table);
    String net = TestNets.data(1, 2)
        + "layer { name: \"echo\" type: \"Flatten\" bottom: \"data\" top: \"echo\" }\n";
    List<InternalRow> rows = new ArrayList<>();
    GenericArrayData classes = new GenericArrayData(new Object[0]);
    rows.add(row(1L, false, classes, UTF8String.fromString(net), NO_WEIGHTS, null));
    for (int i = 0; i < ROWS; i++) {
      rows.add(row(1L, true, null, null, null, row(UnsafeArrayData.fromPrimitiveArray(new float[] {i, 7}))));
    }
    FeedSchema feed = FeedSchema.of(table, List.of(new FeedSchema.Input("data", "x")), "");
    KeyedScores scores = new KeyedScores(feed, table, KeyedNets.outputs(names -> new Second(), "echo"),
        new KeyGroups(met, rows.iterator()));
    assertEquals(7, scores.next().getDouble(1));
    assertEnds("the task has ended: no more rows are computed", scores);
  }

  @Test
  void noMoreKeysAreTrained() {
    StructType schema = new StructType().add("key", DataTypes.LongType)
        .add("x", DataTypes.DoubleType).add("label", DataTypes.DoubleType);
    List<InternalRow> rows = new ArrayList<>();
    for (int i = 0; i < ROWS; i++) rows.add(row((long) (i / 100), i % 7.0, i % 3.0));
    FeedSchema feed = FeedSchema.of(schema, List.of(
        new FeedSchema.Input("table", "x", true), new FeedSchema.Input("table", "label", true)), "");
    ObjectNode options = Json.object().put("solver", "type: \"SGD\" base_lr: 0.01 lr_policy: \"fixed\"")
        .put("seed", 1).put("epochs", 1);
    options.set("schema", feed.toJson());
    options.putArray("columns").add(Json.object().put("name", "x"))
        .add(Json.object().put("name", "label"));
    options.set("net", Json.object().put("label", "label").put("batch", 16));
    KeyedTraining training = new KeyedTraining("key", feed, Set.of("label"), options.toString());
    KeyedTask task = new KeyedTask(training, schema, rows.iterator(),
        new KeyedTally(new LongAccumulator(), new LongAccumulator(), new DoubleAccumulator()));
    InternalRow first = task.next();
    assertNull(first.getUTF8String(2));
    assertEquals(100, first.getLong(1));
    assertEnds("the task has ended: no more keys are trained", task);
  }

  private void assertEnds(String told, Iterator<InternalRow> rows) {
    context.markTaskCompleted(Option.empty());
    assertEquals(told, assertThrows(IllegalStateException.class, rows::next).getMessage());
  }

  private static InternalRow row(Object... cells) {
    return new GenericInternalRow(cells);
  }

  /** A column of the second number. */
  private static final class Second implements OutputColumns {
    private static final long serialVersionUID = 1L;

    @Override
    public StructType append(StructType schema) {
      return schema.add("second", DataTypes.DoubleType);
    }

    @Override
    public InternalRow row(float[][] outputs) {
      return TaskEndTest.row((double) outputs[0][1]);
    }
  }
}
