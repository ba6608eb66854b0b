// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.feed;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.CafetiereException;
import cafetiere.core.Predictor;
import cafetiere.spark.BothLines;
import cafetiere.spark.TestCluster;
import cafetiere.spark.TestNets;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.predict.PredictionPlan;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.apache.spark.ml.linalg.SQLDataTypes;
import org.apache.spark.ml.linalg.Vectors;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Every column type arrives in the engine as it was, from binary and from external rows. */
@BothLines
class FeedTest {
  private static final StructType IMAGE = new StructType()
      .add("origin", DataTypes.StringType).add("height", DataTypes.IntegerType)
      .add("width", DataTypes.IntegerType).add("nChannels", DataTypes.IntegerType)
      .add("mode", DataTypes.IntegerType).add("data", DataTypes.BinaryType);

  /** A caffemodel with a name ("x") and no layers. */
  private static final byte[] NO_WEIGHTS = {0x0a, 1, 'x'};

  private static SparkSession spark;

  @BeforeAll
  static void start() {
    spark = TestCluster.session();
  }

  static Stream<Arguments> columns() {
    return Stream.of(
        Arguments.of(DataTypes.BooleanType, true, new float[] {1}),
        Arguments.of(DataTypes.ByteType, (byte) -3, new float[] {-3}),
        Arguments.of(DataTypes.ShortType, (short) -300, new float[] {-300}),
        Arguments.of(DataTypes.IntegerType, -70000, new float[] {-70000}),
        Arguments.of(DataTypes.LongType, 70000L, new float[] {70000}),
        Arguments.of(DataTypes.FloatType, 0.25f, new float[] {0.25f}),
        Arguments.of(DataTypes.DoubleType, -0.5, new float[] {-0.5f}),
        Arguments.of(DataTypes.createDecimalType(9, 2), new BigDecimal("-12.25"),
            new float[] {-12.25f}),
        Arguments.of(DataTypes.createDecimalType(30, 4), new BigDecimal("1000000.5"),
            new float[] {1000000.5f}),
        Arguments.of(DataTypes.BinaryType, new byte[] {0, 127, -128, -1},
            new float[] {0, 127, 128, 255}),
        Arguments.of(array(DataTypes.IntegerType), new Integer[] {1, -2, 3},
            new float[] {1, -2, 3}),
        Arguments.of(array(DataTypes.LongType), new Long[] {4L, -5L}, new float[] {4, -5}),
        Arguments.of(array(DataTypes.FloatType), new Float[] {0.5f, -2f, 8f},
            new float[] {0.5f, -2, 8}),
        Arguments.of(array(DataTypes.DoubleType), new Double[] {0.5, -2.0}, new float[] {0.5f, -2}),
        Arguments.of(SQLDataTypes.VectorType(), Vectors.dense(1, 2.5), new float[] {1, 2.5f}),
        Arguments.of(SQLDataTypes.VectorType(),
            Vectors.sparse(4, new int[] {1, 3}, new double[] {7, -9}), new float[] {0, 7, 0, -9}),
        Arguments.of(IMAGE,
            RowFactory.create("x.png", 1, 2, 3, 16, new byte[] {1, 2, 3, 4, 5, 6}),
            new float[] {1, 4, 2, 5, 3, 6}));
  }

  @ParameterizedTest
  @MethodSource("columns")
  void aColumnArrivesAsItWas(DataType type, Object value, float[] expected) {
    Dataset<Row> table = table(type, value);
    assertArrayEquals(expected, fromBinaryRow(table, expected.length));
  }

  @Test
  void aNullNamesColumnAndRow() {
    Dataset<Row> table = table(DataTypes.FloatType, null);
    CafetiereException error =
        assertThrows(CafetiereException.class, () -> fromBinaryRow(table, 1));
    assertEquals(CafetiereException.Code.INVALID_ARGUMENT, error.code());
    assertTrue(error.getMessage().contains("column 'x' of the row with id 41 is null"),
        error.getMessage());
    assertNull(error.getCause(), "the whole sentence stands last in Java's trace");
  }

  @Test
  void aNullElementNamesItsPlace() {
    Dataset<Row> table = table(array(DataTypes.FloatType), new Float[] {1f, 2f, null});
    String message =
        assertThrows(CafetiereException.class, () -> fromBinaryRow(table, 3)).getMessage();
    assertTrue(message.contains("holds a null at element 2"), message);
  }

  /** As a Parquet file may hold it, which Spark does not look at when it reads one. */
  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {
      "0Y, 4, array(4), array(1D) | a sparse vector of size 4 with a value at index 4",
      "0Y, 4, array(200000000), array(1D) | a sparse vector of size 4 with a value at index 200000000",
      "0Y, 4, array(-1), array(1D) | a sparse vector of size 4 with a value at index -1",
      "0Y, -4, array(1), array(1D) | a sparse vector of size -4",
      "0Y, null, array(0), array(1D) | a sparse vector of size 0 with a value at index 0",
      "0Y, 4, array(1, 2), array(1D) | a sparse vector of 2 indices and 1 values",
      "0Y, 4, null, array(1D) | a vector whose indices are null",
      "0Y, 4, array(1), null | a vector whose values are null",
      "1Y, null, null, null | a vector whose values are null",
      "0Y, 4, array(0, null), array(1D, 2D) | a null at element 1",
      "0Y, 4, array(0, 1), array(1D, null) | a null at element 1"})
  void aVectorThatIsNoneNamesColumnAndRow(String fields, String wanted) {
    String[] parts = fields.split(", (?![^(]*\\))");
    String type = "struct<type: tinyint, size: int, indices: array<int>, values: array<double>>";
    Column struct = functions.expr("cast(named_struct('type', " + parts[0] + ", 'size', " + parts[1]
        + ", 'indices', " + parts[2] + ", 'values', " + parts[3] + ") as " + type + ")");
    Dataset<Row> bare = spark.range(41, 42).withColumn("x", struct).coalesce(1);
    FeedSchema schema = schema(table(SQLDataTypes.VectorType(), null));
    for (boolean isSkipped : new boolean[] {false, true}) {
      List<Object> answers = SparkInternals.rows(schema.select(bare)).toJavaRDD().mapPartitions(
          rows -> echoAll(isSkipped ? skipping(schema) : schema, 4, rows)).collect();
      if (isSkipped) {
        assertArrayEquals(new float[4], (float[]) answers.get(0));
        continue;
      }
      String message = ((CafetiereException) answers.get(0)).getMessage();
      assertTrue(message.startsWith("column 'x' of the row with id 41 holds " + wanted), message);
    }
  }

  private static FeedSchema skipping(FeedSchema schema) {
    return schema.skippingBadRows(true, "", net(4), "TEST");
  }

  @Test
  void aMissingColumnNamesTheNearest() {
    StructType schema = new StructType().add("image", DataTypes.BinaryType);
    String message = assertThrows(IllegalArgumentException.class, () -> FeedSchema.of(
        schema, List.of(new FeedSchema.Input("data", "imgae")), "")).getMessage();
    assertTrue(message.contains("'imgae'") && message.contains("'image'"), message);
  }

  /** Each task looks for its columns; minutes, if the time grew with the square of their number. */
  @Test
  void manyColumnsAreFoundAtOnce() {
    int size = 40_000;
    StructField[] fields = new StructField[size];
    List<FeedSchema.Input> inputs = new ArrayList<>();
    for (int i = 0; i < size; i++) {
      fields[size - 1 - i] = new StructField("x" + i, DataTypes.FloatType, true, Metadata.empty());
      inputs.add(new FeedSchema.Input("table", "x" + i, true));
    }
    StructType table = new StructType(fields);
    FeedSchema schema = FeedSchema.of(table, inputs, "x0");
    int[] ordinals = schema.ordinals(table);
    boolean[] mayBeMissing = schema.mayBeMissing();
    for (int i = 0; i < size; i++) {
      assertEquals(size - 1 - i, ordinals[i]);
      assertEquals(i > 0, mayBeMissing[i]);
    }
  }

  @Test
  void aColumnThatCannotBeFedIsRefused() {
    StructType schema = new StructType().add("day", DataTypes.DateType);
    String message = assertThrows(IllegalArgumentException.class, () -> FeedSchema.of(
        schema, List.of(new FeedSchema.Input("data", "day")), "")).getMessage();
    assertTrue(message.contains("'day' is of type date"), message);
  }

  private static DataType array(DataType element) {
    return DataTypes.createArrayType(element);
  }

  /** One row: a column x of the given type behind an id. */
  private static Dataset<Row> table(DataType type, Object value) {
    StructType schema = new StructType().add("id", DataTypes.LongType).add("x", type);
    return spark.createDataFrame(List.of(RowFactory.create(41L, value)), schema).coalesce(1);
  }

  private static FeedSchema schema(Dataset<Row> table) {
    return FeedSchema.of(table.schema(), List.of(new FeedSchema.Input("data", "x")), "id");
  }

  /** Encodes on the executor, where the binary row lives. Errors come back as they were thrown. */
  private static float[] fromBinaryRow(Dataset<Row> table, int size) {
    FeedSchema schema = schema(table);
    List<Object> answers = SparkInternals.rows(schema.select(table)).toJavaRDD()
        .mapPartitions(rows -> echoAll(schema, size, rows)).collect();
    if (answers.get(0) instanceof CafetiereException e) throw e;
    return (float[]) answers.get(0);
  }

  private static Iterator<Object> echoAll(FeedSchema schema, int size, Iterator<InternalRow> rows) {
    List<Object> answers = new ArrayList<>();
    while (rows.hasNext()) {
      InternalRow row = rows.next();
      try {
        answers.add(echo(schema, size, encoder -> encoder.add(row)));
      } catch (CafetiereException e) {
        answers.add(e);
      }
    }
    return answers.iterator();
  }

  /** Feeds one row to a net that gives back what it got. */
  private static float[] echo(FeedSchema schema, int size, Consumer<RowEncoder> add) {
    PredictionPlan plan = new PredictionPlan(net(size), "none", schema, List.of("echo"), 1, 1, "float32", "");
    ByteBuffer[] values = {Predictor.allocate(size)};
    try (Predictor predictor = plan.open(NO_WEIGHTS);
        RowEncoder encoder = new RowEncoder(schema,
            (rows, address, bytes) -> predictor.run(rows, address, bytes, values))) {
      add.accept(encoder);
      encoder.flush();
    }
    float[] floats = new float[size];
    values[0].asFloatBuffer().get(floats);
    return floats;
  }

  private static String net(int size) {
    return TestNets.data(1, size)
        + "layer { name: \"echo\" type: \"Flatten\" bottom: \"data\" top: \"echo\" }";
  }
}
