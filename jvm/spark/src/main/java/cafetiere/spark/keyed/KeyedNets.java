// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.keyed;

import cafetiere.spark.CaffeModel;
import cafetiere.spark.PreflightException;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.internal.BinaryRows;
import cafetiere.spark.internal.NamedColumn;
import cafetiere.spark.kinds.ColumnKinds;
import cafetiere.spark.predict.OutputColumns;
import cafetiere.spark.saved.ModelFolder;
import cafetiere.spark.util.HadoopFiles;
import cafetiere.spark.util.Json;
import com.esotericsoftware.kryo.DefaultSerializer;
import com.esotericsoftware.kryo.serializers.JavaSerializer;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The nets of all keys.
 *
 * @param table of each key: key, rows, error, loss, classes, net, weights
 * @param keyColumn of tables that are scored
 * @param told of the training
 * @param source where the table is read from whenever it is used, a Hadoop path; "" of nets just trained
 */
@DefaultSerializer(JavaSerializer.class) // Kryo cannot make a record, nor look at a field for one
public record KeyedNets(Dataset<Row> table, String keyColumn, Told told, String source) {
  static final String NET = "net";
  /** In the metadata of NET: the names of the columns that are learned from, a JSON list. */
  static final String COLUMNS = "columns";
  /** Beside it: what they are learned as, {@link ColumnKinds#json}; older models lack it. */
  static final String KINDS = "kinds";
  /** Beside it: the column of keys. */
  static final String KEY = "key";

  /** Beside it, of nets that were saved: the summary. */
  private static final String SUMMARY = "summary";

  /**
   * What a training tells.
   *
   * @param summary a TrainingSummary in JSON
   * @param events one JSON object a line
   */
  public record Told(String summary, String events) implements Serializable {}

  /** What makes a net of the table one that predicts. */
  public static final String TO_PREDICT = "state { phase: TEST stage: \"predict\" }\n";


  /** What is added to rows of any key; its classes decide what vectors hold. */
  public interface ColumnsOf extends Serializable {
    /** The columns for a key that tells these classes apart; none: not yet known. */
    OutputColumns of(List<String> classes);
  }

  /**
   * What is added, and of what.
   *
   * @param blobs that the columns are made of
   */
  public record Outputs(ColumnsOf columns, List<String> blobs) implements Serializable {}

  /** Columns that are made of these blobs. */
  public static Outputs outputs(ColumnsOf columns, String... blobs) {
    return new Outputs(columns, List.of(blobs));
  }

  /** The table; where its session has ended, as the active one reads it. */
  @Override
  public Dataset<Row> table() {
    return table(SparkSession.active());
  }

  private Dataset<Row> table(SparkSession spark) {
    if (!table.sparkSession().sparkContext().isStopped()) return table;
    if (!source.isEmpty()) return spark.read().parquet(source);
    throw new IllegalStateException(
        "the session that trained these nets has ended: save the model before, and load it");
  }

  /** A table's schema with what is added. A row of a key without a net has nulls there. */
  public static StructType append(StructType schema, OutputColumns columns) {
    StructType all = columns.append(schema);
    StructField[] fields = all.fields().clone();
    for (int i = schema.size(); i < fields.length; i++) {
      fields[i] = new StructField(
          fields[i].name(), fields[i].dataType(), true, fields[i].metadata());
    }
    return new StructType(fields);
  }

  /** What {@link #transform} makes of a schema; checks it. */
  public StructType transformSchema(StructType schema, Outputs outputs) {
    requireKey(schema);
    feed(schema);
    return append(schema, outputs.columns().of(List.of()));
  }

  /** Scores each row by its key's net. The rows are shuffled by key. */
  public Dataset<Row> transform(Dataset<?> data, Outputs outputs) {
    if (data.isStreaming()) {
      throw new PreflightException(List.of("a stream has no order by which rows would meet the nets of"
          + " their keys: transform it in foreachBatch, batch by batch"));
    }
    StructType schema = data.schema();
    StructType result = transformSchema(schema, outputs);
    FeedSchema feed = feed(schema);
    int tasks = KeyedTraining.tasks(data.sparkSession().sparkContext());
    Dataset<Row> nets = nets(data.sparkSession());
    Dataset<Row> met = KeyedTraining.sorted(rows(data).unionByName(nets, true), tasks,
        functions.col("key"), functions.col("isRow"));
    StructType given = met.schema();
    return BinaryRows.map(met, result,
        partition -> new KeyedScores(feed, schema, outputs, new KeyGroups(given, partition)));
  }

  /** The net of one key; an error where it has none. */
  public CaffeModel model(Object key, Outputs outputs) {
    List<Row> found = table().withColumn("wanted", functions.lit(key)).filter(sameKey(key))
        .select("error", NET, "weights").collectAsList();
    if (found.isEmpty()) throw new IllegalArgumentException("no row in training had the key " + key);
    Row row = found.get(0);
    if (!row.isNullAt(0)) {
      throw new IllegalArgumentException("the key " + key + " has no net: " + row.getString(0));
    }
    return CaffeModel.ofWeights(row.<byte[]>getAs(2), Map.of())
        .setNet(row.getString(1) + TO_PREDICT)
        .setOutputCols(outputs.blobs().toArray(new String[0]));
  }

  /** The condition on {@code wanted}. What is no value of the keys' type is a key that does not occur. */
  private String sameKey(Object key) {
    DataType type = table.schema().fields()[0].dataType();
    boolean areNumbers = key instanceof Number && type instanceof NumericType;
    return areNumbers ? "key <=> wanted" : "key <=> try_cast(wanted AS " + type.sql() + ")";
  }

  /** Writes the table below a folder. */
  public void save(String path) {
    Metadata noted = new MetadataBuilder().withMetadata(field(table).metadata())
        .putString(SUMMARY, told.summary()).build();
    table().withMetadata(NET, noted).write().parquet(ModelFolder.netsOfKeys(path));
  }

  /** Whether there is such a table below a folder. */
  public static boolean areIn(String path, Configuration conf) {
    return HadoopFiles.exists(ModelFolder.netsOfKeys(path), conf);
  }

  /** Reads what {@link #save} wrote. */
  public static KeyedNets load(SparkSession spark, String path) {
    Dataset<Row> table = spark.read().parquet(ModelFolder.netsOfKeys(path));
    Metadata noted = field(table).metadata();
    return new KeyedNets(table, noted.getString(KEY),
        new Told(noted.contains(SUMMARY) ? noted.getString(SUMMARY) : "{}", ""),
        ModelFolder.netsOfKeys(path));
  }

  private void requireKey(StructType schema) {
    StructField key = KeyedTraining.key(schema, keyColumn);
    StructField trained = table.schema().fields()[0];
    if (key.dataType().equals(trained.dataType())) return;
    throw new PreflightException(List.of("groupCol '" + keyColumn + "' is of type "
        + key.dataType().catalogString() + " here, and was " + trained.dataType().catalogString()
        + " in training: cast it"));
  }

  private static StructField field(Dataset<Row> table) {
    return table.schema().fields()[table.schema().fieldIndex(NET)];
  }

  private FeedSchema feed(StructType schema) {
    List<FeedSchema.Input> cells = new ArrayList<>();
    for (JsonNode name : Json.parse(field(table).metadata().getString(COLUMNS))) {
      cells.add(new FeedSchema.Input("table", name.asText(), true));
    }
    FeedSchema feed = FeedSchema.of(schema, cells, "");
    Metadata noted = field(table).metadata();
    ColumnKinds.ofJson(noted.contains(KINDS) ? noted.getString(KINDS) : "").require(feed.table());
    return feed;
  }

  /** A net a row, before the rows of its key. */
  private Dataset<Row> nets(SparkSession spark) {
    return table(spark).filter(functions.col("error").isNull()).select(functions.col("key"),
        functions.lit(false).as("isRow"), functions.col("classes"), functions.col(NET),
        functions.col("weights"));
  }

  /** By their places: a table may have several columns of one name, if it is not that of the key. */
  private Dataset<Row> rows(Dataset<?> data) {
    String[] places = IntStream.range(0, data.schema().size()).mapToObj(Integer::toString)
        .toArray(String[]::new);
    return data.toDF(places).select(NamedColumn.of(places[data.schema().fieldIndex(keyColumn)]).as("key"),
        functions.lit(true).as("isRow"),
        functions.lit(null).cast(DataTypes.createArrayType(DataTypes.StringType)).as("classes"),
        functions.lit(null).cast("string").as(NET),
        functions.lit(null).cast("binary").as("weights"),
        functions.struct(Stream.of(places).map(NamedColumn::of).toArray(Column[]::new)).as("row"));
  }
}
