// SPDX-License-Identifier: Apache-2.0
package cafetiere.tools

import org.apache.spark.sql.functions.{col, lit, xxhash64}
import org.apache.spark.sql.{DataFrame, SparkSession}

/** Shuffles a data set, all of it or its first classes, into files of about the same size.
  *
  * {{{
  * spark-submit --class cafetiere.tools.Sampler cafetiere-all_2.13.jar -input s3a://bucket/train-*.tar
  *   -inputFormat tar -labels s3a://bucket/train.txt -classes 100 -parts 50 -output s3a://bucket/first100
  * }}}
  *
  * `-inputFormat` and `-outputFormat` are Spark's names of formats, parquet where they are not given; `-label` is
  * the column of the class, `label` where it is not given, and `-seed` another number for another order. Any other
  * flag is an option of the input's format.
  */
object Sampler {
  private val Order = "cafetiere order"
  private val Own = Set("input", "inputFormat", "output", "outputFormat", "classes", "label", "parts", "seed")

  def main(args: Array[String]): Unit = {
    val flags = parsed(args)
    def needed(name: String) =
      flags.getOrElse(name, throw new IllegalArgumentException(s"-$name is missing"))
    def number(name: String, otherwise: Int) = {
      val text = flags.getOrElse(name, otherwise.toString)
      if (!text.matches("\\d{1,9}")) throw new IllegalArgumentException(s"-$name $text: a whole number is needed")
      text.toInt
    }
    val (input, output) = (needed("input"), needed("output"))
    val (classes, seed) = (number("classes", 0), number("seed", 0))
    val isOwn = SparkSession.getDefaultSession.isEmpty
    val spark = SparkSession.builder().appName("cafetiere sampler").getOrCreate()
    try {
      val rows = spark.read.format(flags.getOrElse("inputFormat", "parquet"))
        .options(flags.filterNot { case (name, _) => Own(name) }).load(input)
      val parts = number("parts", spark.sparkContext.defaultParallelism)
      sample(rows, flags.getOrElse("label", "label"), classes, parts, seed)
        .write.format(flags.getOrElse("outputFormat", "parquet")).save(output)
    } finally if (isOwn) spark.stop()
  }

  /** The rows in an order that their values and the seed alone decide.
    *
    * @param label the column of the class
    * @param classes keeps classes below this number; 0 for all
    * @param parts partitions of the result, at least 1
    */
  def sample(rows: DataFrame, label: String, classes: Int, parts: Int, seed: Long): DataFrame = {
    if (parts < 1) throw new IllegalArgumentException(s"-parts $parts: at least 1 is needed")
    val kept = if (classes > 0) rows.filter(col(label).cast("int") < classes) else rows
    val values = kept.columns.toSeq.map(name => col(s"`$name`"))
    kept.withColumn(Order, xxhash64(values :+ lit(seed): _*)).repartitionByRange(parts, col(s"`$Order`"))
      .sortWithinPartitions(s"`$Order`").drop(Order)
  }

  private def parsed(args: Array[String]): Map[String, String] = args.grouped(2).map {
    case Array(flag, value) if flag.startsWith("-") => flag.dropWhile(_ == '-') -> value
    case other => throw new IllegalArgumentException(s"'${other.mkString(" ")}' is no flag with a value")
  }.toMap
}
