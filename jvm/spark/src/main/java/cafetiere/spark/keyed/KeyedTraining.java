// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.keyed;

import cafetiere.spark.PreflightException;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.internal.BinaryRows;
import cafetiere.spark.internal.NamedColumn;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.kinds.ColumnKinds;
import cafetiere.spark.util.Json;
import cafetiere.spark.util.NearestName;
import cafetiere.spark.util.Unchecked;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.storage.StorageLevel;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Trains a net for each key of a table. The rows are shuffled by key; a task trains its keys one after
 * another, on one thread, and holds the rows of one. A key's net depends on its own rows alone.
 *
 * @param keyColumn tells the key of a row
 * @param rows what of a row is learned from, and the targets
 * @param targets columns of the label and of what a row counts
 * @param options those of cafetiere.core.table.KeyedTrainer
 */
public record KeyedTraining(
    String keyColumn, FeedSchema rows, Set<String> targets, String options)
    implements Serializable {
  private static final Logger LOG = LoggerFactory.getLogger(KeyedTraining.class);
  private static final int TASKS_PER_SLOT = 8; // keys are of unequal sizes
  /** The key beside the columns of a table, one of which may be called key. */
  private static final String OWN_KEY = "cafetiere key";
  private static final List<DataType> KEY_TYPES = List.of(DataTypes.StringType,
      DataTypes.ByteType, DataTypes.ShortType, DataTypes.IntegerType, DataTypes.LongType,
      DataTypes.BooleanType, DataTypes.DateType, DataTypes.TimestampType,
      DataTypes.TimestampNTZType, DataTypes.BinaryType);

  /** Finds the column of keys in a table; a {@link PreflightException} tells what is wrong with it. */
  public static StructField key(StructType schema, String name) {
    List<StructField> named = Stream.of(schema.fields()).filter(field -> field.name().equals(name)).toList();
    if (named.isEmpty()) {
      throw new PreflightException(List.of("groupCol names '" + name + "', which is no column of the table"
          + NearestName.among(List.of(schema.fieldNames()), name)));
    }
    if (named.size() > 1) {
      throw new PreflightException(List.of("the table has " + named.size() + " columns named '" + name
          + "', which is groupCol: rename or drop all but one"));
    }
    DataType type = named.get(0).dataType();
    if (KEY_TYPES.contains(type) || type instanceof DecimalType) return named.get(0);
    throw new PreflightException(List.of("groupCol '" + name + "' is of type " + type.catalogString()
        + ", whose values are no keys: cast it to text or to whole numbers"));
  }

  /** Trains all keys, and keeps what comes of it in the cluster's memory and disks. */
  public KeyedNets train(Dataset<?> data, KeyedReport report) {
    SparkContext sc = data.sparkSession().sparkContext();
    try (KeyedRun run = new KeyedRun(sc, report, slots(sc), tasks(sc))) {
      try {
        run.begin();
        return trained(data, run);
      } catch (Throwable e) {
        Throwable told = told(e, sc);
        run.fail(told);
        throw Unchecked.rethrow(told);
      }
    }
  }

  /** Of a plan that it makes for a context that is stopped meanwhile, Spark only tells of faults within. */
  private static Throwable told(Throwable failure, SparkContext sc) {
    if (!sc.isStopped() || SparkInternals.isCancelled(failure)) return failure;
    return new IllegalStateException("the SparkContext was stopped before the training had ended", failure);
  }

  private KeyedNets trained(Dataset<?> data, KeyedRun run) {
    // The key stands first whether or not it is learned from.
    Column[] columns = Stream.concat(
        Stream.of(NamedColumn.of(keyColumn).as(OWN_KEY)),
        Stream.of(rows.table().fieldNames()).map(NamedColumn::of)).toArray(Column[]::new);
    Dataset<Row> sorted = sorted(data.toDF().select(columns), run.tasks(), functions.col(OWN_KEY));
    StructType schema = sorted.schema();
    KeyedTally tally = run.tally();
    StructType result = schema(schema.fields()[0]);
    RDD<InternalRow> trained = SparkInternals.rows(BinaryRows.map(
        sorted, result, partition -> new KeyedTask(this, schema, partition, tally)));
    // A plan that began at the table would be planned anew, and train on what is in it then, whenever Spark
    // learns that somebody has written to it.
    Dataset<Row> nets = SparkInternals.table(data.sparkSession(), trained, result)
        .persist(StorageLevel.MEMORY_AND_DISK());
    try {
      Row totals = totals(nets);
      requireNets(nets, totals.getLong(0), totals.getLong(1));
      return new KeyedNets(nets, keyColumn, run.end(totals), "");
    } catch (Throwable e) {
      nets.unpersist();
      throw e;
    }
  }

  /** Refuses a table without keys, and warns where none has a net: a net that fails does not fail a fit. */
  private static void requireNets(Dataset<Row> nets, long keys, long withNets) {
    if (keys == 0) {
      throw new PreflightException(List.of("the table has no rows: nothing can be learned from it"));
    }
    if (withNets > 0) return;
    Row first = nets.select("key", "error").orderBy("key").first();
    LOG.warn("None of the {} keys of groupCol has a net, so that all predictions are null; of the first,"
        + " {}: {}", keys, first.get(0), first.getString(1));
  }

  /** Keys, nets, rows, rows of keys that have a net. A net is trained when its row is asked for: now. */
  private static Row totals(Dataset<Row> nets) {
    Column given = functions.col("rows");
    Column isNet = functions.col("error").isNull();
    return nets.agg(functions.count(functions.lit(1)), functions.count_if(isNet),
        functions.sum(given), functions.sum(functions.when(isNet, given))).head();
  }

  /** What the nets learn these columns as. */
  private ColumnKinds kinds(List<String> features) {
    Map<String, String> kinds = new HashMap<>();
    for (JsonNode column : Json.parse(options).path("columns")) {
      String name = column.path("name").asText();
      if (features.contains(name)) kinds.put(name, column.path("kind").asText());
    }
    return ColumnKinds.of(kinds);
  }

  private static int slots(SparkContext sc) {
    return Math.max(1, SparkInternals.taskSlots(sc).orElse(sc.defaultParallelism()));
  }

  /** How many tasks a table's keys are spread over. */
  static int tasks(SparkContext sc) {
    return slots(sc) * TASKS_PER_SLOT;
  }

  /** The rows of a key in one task, one after another. */
  static Dataset<Row> sorted(Dataset<Row> table, int tasks, Column... order) {
    // With a number of its own, Spark does not unite small partitions: the work is not in the bytes.
    return table.repartition(tasks, order[0]).sortWithinPartitions(order);
  }

  /** What there is of each key. The columns that a net reads are noted with it. */
  private StructType schema(StructField key) {
    List<String> features = Stream.of(rows.table().fieldNames())
        .filter(name -> !targets.contains(name) && !name.equals(rows.idColumn())).toList();
    return new StructType().add("key", key.dataType(), key.nullable(), key.metadata())
        .add("rows", DataTypes.LongType, false)
        .add("error", DataTypes.StringType, true)
        .add("loss", DataTypes.DoubleType, true)
        .add("classes", DataTypes.createArrayType(DataTypes.StringType, false), true)
        .add(new StructField(KeyedNets.NET, DataTypes.StringType, true, new MetadataBuilder()
            .putString(KeyedNets.COLUMNS, Json.array(features).toString())
            .putString(KeyedNets.KINDS, kinds(features).json())
            .putString(KeyedNets.KEY, keyColumn).build()))
        .add("weights", DataTypes.BinaryType, true);
  }
}
