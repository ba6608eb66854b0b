// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.submit;

import cafetiere.spark.internal.NamedColumn;
import cafetiere.spark.lmdb.LmdbFiles;
import cafetiere.spark.netfiles.FileTable;
import cafetiere.spark.plan.NetDescription;
import cafetiere.spark.plan.NetDescription.Top;
import cafetiere.spark.plan.SourceLayer;
import cafetiere.spark.sequence.SequenceImages;
import cafetiere.spark.util.HadoopFiles;
import cafetiere.spark.util.NearestName;
import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF4;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/**
 * The table that a net's data layers name, as CaffeOnSpark reads it, or one that the command line
 * names instead; and which of its columns feed the net.
 *
 * @param rows the table
 * @param dataColumn feeds the features, unless their layer names the columns itself
 * @param labelColumn feeds the label, likewise
 * @param idColumn identifies a row, "" if there is none
 * @param areFiles whether the rows say that their images are files, and the net does not
 */
record NetTable(Dataset<Row> rows, String dataColumn, String labelColumn, String idColumn,
    boolean areFiles) {
  private static final List<String> DATA_NAMES = List.of("data", "image", "features");
  private static final List<String> ID_NAMES = List.of("id", "SampleID");
  private static final String SOURCES = "com.yahoo.ml.caffe.";
  private static final String FILE = "file:";
  private static final String LMDB = SOURCES + "LMDB";
  private static final String SEQUENCES = SOURCES + "SeqImageDataSource";
  private static final List<String> TABLES =
      List.of(SOURCES + "ImageDataFrame", SOURCES + "DataFrameSource", LMDB, SEQUENCES);
  private static final Pattern ENCODED = Pattern.compile("\\bimage_encoded\\s*:\\s*(true|t|1)\\b");
  private static final Pattern NOT_ENCODED =
      Pattern.compile("\\bimage_encoded\\s*:\\s*(true|t|1|false|f|0)\\b");
  private static final Pattern BLOCK = Pattern.compile("\\bmemory_data_param\\s*:?\\s*\\{");
  private static final Pattern MEMORY =
      Pattern.compile("\\bmemory_data_param\\s*:?\\s*\\{[^{}]*\\}");

  /**
   * Opens the table of a phase's data layer; {@code flag} may name another one.
   *
   * @param text the net's prototxt
   */
  static NetTable open(
      SparkSession spark, Flags flags, NetDescription net, String text, String flag) {
    List<JsonNode> layers = layers(net);
    JsonNode layer = layers.stream().filter(one -> !source(one).isEmpty()).findFirst()
        .orElse(layers.get(0));
    String path = flags.get(flag, source(layer));
    if (path.isEmpty()) {
      throw new Flags.UsageException("the data layer names no source: pass the table with -" + flag
          + " PATH");
    }
    String sourceClass = layer.path("source_class").asText("");
    if (!flags.has(flag)) {
      requireTable(sourceClass, flag);
      requireOneTable(layer, layers, flag);
    }
    boolean isLmdb = flags.has(flag)
        ? LmdbFiles.areAt(path, spark.sparkContext().hadoopConfiguration())
        : sourceClass.equals(LMDB);
    String format = layer.path("dataframe_format").asText("");
    Dataset<Row> rows;
    if (isLmdb) {
      rows = lmdb(spark, flags, path, layer.path("type").asText());
    } else if (!flags.has(flag) && sourceClass.equals(SEQUENCES)) {
      rows = SequenceImages.read(spark, path);
    } else {
      rows = spark.read().format(format.isEmpty() ? "parquet" : format).load(path);
    }
    Set<String> select = new LinkedHashSet<>();
    for (JsonNode one : layers) {
      one.path("dataframe_column_select").forEach(expression -> select.add(expression.asText()));
    }
    if (!select.isEmpty()) rows = rows.selectExpr(select.toArray(new String[0]));
    return of(rows, flags, net, text);
  }

  /** The same of rows that a program has. */
  static NetTable of(Dataset<Row> rows, Flags flags, NetDescription net, String text) {
    NetTable table = of(rows, flags, columns(net, "features"), columns(net, "label")).ofRecords();
    JsonNode layer = net.json().path("data_layer");
    if (!layer.path("type").asText().equals("MemoryData")) return table;
    String fields = text.replaceAll("#[^\n]*", "");
    Matcher declared = MEMORY.matcher(fields);
    String sourceClass = layer.path("source_class").asText("");
    boolean isTable = sourceClass.equals(TABLES.get(0));
    String sizes = isTable && declared.find() ? declared.group() : "";
    boolean isEncoded = ENCODED.matcher(fields).find();
    if (!isEncoded && !sourceClass.isEmpty() && table.holdsFiles()) {
      return table.ofImages(true, sizes).asFiles();
    }
    return table.ofImages(isEncoded, sizes);
  }

  private static List<String> columns(NetDescription net, String role) {
    return net.tops().stream().filter(top -> top.role().equals(role)).map(Top::ownColumn).toList();
  }

  /** The rows of CaffeOnSpark's sources say of each image whether it is a file, whatever the net says. */
  private boolean holdsFiles() {
    if (!Arrays.asList(rows.columns()).contains("encoded")) return false;
    List<Row> first = rows.select("encoded").takeAsList(1);
    return !first.isEmpty() && Boolean.TRUE.equals(first.get(0).get(0));
  }

  private NetTable asFiles() {
    return new NetTable(rows, dataColumn, labelColumn, idColumn, true);
  }

  /** The net's prototxt, with image_encoded where the rows ask for it. */
  String net(String text) {
    if (!areFiles) return text;
    return BLOCK.matcher(NOT_ENCODED.matcher(text).replaceAll(""))
        .replaceAll("$0 image_encoded: true ");
  }

  /** Opens the table of what layers of files hold; {@code flag} may name another one. */
  static NetTable ofFiles(
      SparkSession spark, Flags flags, List<SourceLayer> layers, String flag) {
    String path = flags.get(flag, "");
    String partitions = flags.get("lmdb_partitions", "");
    FileTable table;
    if (!flags.has(flag)) {
      table = FileTable.open(spark, layers, partitions);
    } else if (LmdbFiles.areAt(path, spark.sparkContext().hadoopConfiguration())) {
      table = FileTable.ofLmdb(spark, located(path), partitions);
    } else {
      table = FileTable.ofImages(spark.read().parquet(path), false);
    }
    return ofFiles(table.rows(), flags, layers);
  }

  /** The same of rows that a program has. */
  static NetTable ofFiles(Dataset<Row> rows, Flags flags, List<SourceLayer> layers) {
    return of(rows, flags, only(layers, "features"), only(layers, "label"));
  }

  /** The tops of a role. */
  private static List<String> only(List<SourceLayer> layers, String role) {
    return layers.stream().flatMap(layer -> layer.tops(role).stream()).toList();
  }

  /** The column that feeds a top of one of the net's data layers. */
  String column(Top top) {
    return top.columnOf(dataColumn, labelColumn);
  }

  /** The rows of databases; for CaffeOnSpark's layers pixel by pixel, as its LMDB gives them. */
  private static Dataset<Row> lmdb(SparkSession spark, Flags flags, String path, String layer) {
    boolean isByPixel = layer.equals("MemoryData") || layer.equals("CoSData");
    return spark.read().format("lmdb").option("layout", isByPixel ? "hwc" : "chw")
        .option("partitions", flags.get("lmdb_partitions", "")).load(located(path));
  }

  /** CaffeOnSpark takes file:some/folder from the folder that it runs in; Hadoop does not. */
  private static String located(String path) {
    boolean isRelative = path.startsWith(FILE) && !path.startsWith(FILE + "/");
    return isRelative ? HadoopFiles.ofLocal(Path.of(path.substring(FILE.length()))) : path;
  }

  /** Fed by the numbers of databases that have them in place of bytes. */
  private NetTable ofRecords() {
    List<String> columns = Arrays.asList(rows.columns());
    if (!dataColumn.equals("data") || !columns.contains("float_data")) return this;
    List<Row> first = rows.select("data", "float_data").takeAsList(1);
    boolean hasNumbers = !first.isEmpty() && first.get(0).isNullAt(0) && !first.get(0).isNullAt(1);
    return hasNumbers ? new NetTable(rows, "float_data", labelColumn, idColumn, areFiles) : this;
  }

  /** The data layers, the one with the features first. */
  private static List<JsonNode> layers(NetDescription net) {
    JsonNode main = net.json().path("data_layer");
    List<JsonNode> layers = new ArrayList<>(List.of(main));
    main.path("others").forEach(layers::add);
    return layers;
  }

  private static String source(JsonNode layer) {
    return layer.path("source").asText("");
  }

  /** Layers that name no table take columns of the one that another names. */
  private static void requireOneTable(JsonNode layer, List<JsonNode> layers, String flag) {
    for (JsonNode other : layers) {
      if (source(other).isEmpty() || source(other).equals(source(layer))) continue;
      throw new Flags.UsageException("layer '" + layer.path("name").asText() + "' names the table "
          + source(layer) + " and layer '" + other.path("name").asText() + "' " + source(other)
          + ": join them, with a column for each top, and pass the table with -" + flag + " PATH");
    }
  }

  private static void requireTable(String sourceClass, String flag) {
    if (sourceClass.isEmpty() || TABLES.contains(sourceClass)) return;
    String advice = ": store the table as parquet and pass it with -" + flag + " PATH";
    throw new Flags.UsageException("source_class " + sourceClass + " is not known; "
        + NearestName.of(sourceClass, TABLES).map(name -> "did you mean " + name + "?")
            .orElse("there are " + String.join(", ", TABLES)) + " Or" + advice.substring(1));
  }

  /**
   * With what CaffeOnSpark's ImageDataFrame means by its columns: data may be a string of bytes,
   * and raw images lie pixel by pixel, as Spark's images do, where channels, height and width are
   * columns or in {@code declared}, the fields of the layer; they may lie among image files.
   */
  private NetTable ofImages(boolean isEncoded, String declared) {
    List<String> columns = Arrays.asList(rows.columns());
    if (!columns.contains(dataColumn)) return this;
    DataType type = rows.schema().apply(dataColumn).dataType();
    boolean isText = type.equals(DataTypes.StringType);
    if (!isText && !type.equals(DataTypes.BinaryType)) return this;
    Optional<Column> height = size("height", declared);
    Optional<Column> width = size("width", declared);
    Optional<Column> channels = size("channels", declared);
    boolean isSized = height.isPresent() && width.isPresent() && channels.isPresent();
    Column data = NamedColumn.of(dataColumn).cast(DataTypes.BinaryType);
    if (columns.contains("encoded")) {
      Column isOther = rows.col("encoded").equalTo(!isEncoded).and(data.isNotNull());
      data = functions.when(isOther, isEncoded && isSized
          ? pixelFile().apply(data, channels.get(), height.get(), width.get()) : refusal(isEncoded))
          .otherwise(data);
    }
    if (!isEncoded && isSized) {
      data = functions.when(data.isNotNull(), functions.struct(functions.lit("").as("origin"),
          height.get().as("height"), width.get().as("width"), channels.get().as("nChannels"),
          functions.lit(0).as("mode"), data.as("data")));
    }
    return new NetTable(
        rows.withColumn(dataColumn, data), dataColumn, labelColumn, idColumn, areFiles);
  }

  private static Column refusal(boolean isEncoded) {
    return functions.raise_error(functions.lit("column 'encoded' is " + !isEncoded + ", and the net's"
        + " data layer has image_encoded: " + isEncoded + ": " + (isEncoded
            ? "add columns channels, height and width" : "set image_encoded: true")));
  }

  /** Raw images among files become files too, whose pixels are the same. */
  private static UserDefinedFunction pixelFile() {
    return functions.udf((UDF4<byte[], Integer, Integer, Integer, byte[]>) PixelFile::of,
        DataTypes.BinaryType);
  }

  private Optional<Column> size(String name, String declared) {
    if (Arrays.asList(rows.columns()).contains(name)) {
      return Optional.of(rows.col(name).cast(DataTypes.IntegerType));
    }
    Matcher field = Pattern.compile("\\b" + name + "\\s*:\\s*(\\d+)").matcher(declared);
    return field.find()
        ? Optional.of(functions.lit(Integer.parseInt(field.group(1)))) : Optional.empty();
  }

  /** {@code features}, {@code labels}: columns that are taken first, where the table has them. */
  private static NetTable of(
      Dataset<Row> rows, Flags flags, List<String> features, List<String> labels) {
    List<String> columns = Arrays.asList(rows.columns());
    List<String> dataNames = new ArrayList<>(features);
    dataNames.addAll(DATA_NAMES);
    List<String> labelNames = new ArrayList<>(labels);
    labelNames.add("label");
    String data = flags.has("dataCol") ? flags.get("dataCol", "") : first(dataNames, columns)
        .orElseThrow(() -> new Flags.UsageException("none of the table's columns ("
            + String.join(", ", columns) + ") has one of the names " + String.join(", ", dataNames)
            + ": name the column that feeds the net with -dataCol"));
    String label = flags.get("labelCol", first(labelNames, columns).orElse("label"));
    String id = flags.get("idCol", first(ID_NAMES, columns).orElse(""));
    return new NetTable(rows, data, label, id, false);
  }

  private static Optional<String> first(List<String> wanted, List<String> columns) {
    return wanted.stream().filter(columns::contains).findFirst();
  }
}
