// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}

import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.api.{AfterAll, Test, TestInstance}

/** What the sources make of the cells of tables, and which of them they refuse. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class CellsTest {
  @TempDir var folder: Path = _
  private val spark = SparkSession.builder().master("local[2]").getOrCreate()

  @AfterAll def stop(): Unit = spark.stop()

  private def message(code: => Any): String = {
    val thrown: Throwable = assertThrows(classOf[Exception], () => { code; () })
    Iterator.iterate(thrown)(_.getCause).takeWhile(_ != null).map(_.getMessage).mkString("; ")
  }

  private def solver(layer: String): String = {
    Files.write(folder.resolve("net"), layer.getBytes(UTF_8))
    Files.write(folder.resolve("solver"), "net: 'net' base_lr: 0.1".getBytes(UTF_8))
    folder.resolve("solver").toString
  }

  /** The table of an ImageDataFrame, or of another source, that reads these rows. */
  private def read(rows: DataFrame, layer: String => String, flags: String*): DataFrame = {
    rows.write.mode("overwrite").parquet(folder.resolve("table").toUri.toString)
    val args = Array("-conf", solver(layer(folder.resolve("table").toUri.toString))) ++ flags
    DataSource.getSource(new Config(spark.sparkContext, args), isTraining = true).table(spark)
  }

  private def images(source: String): String =
    s"""layer { name: "data" type: "MemoryData" top: "data" top: "label" include { phase: TRAIN }
      source_class: "com.yahoo.ml.caffe.ImageDataFrame"
      memory_data_param { source: "$source" batch_size: 2 channels: 1 height: 2 width: 2 } }"""

  private def tops(types: String*)(source: String): String = {
    val all = types.zipWithIndex.map { case (of, i) => s"top { name: 'c$i' type: $of channels: 2 sample_num_axes: 1 }" }
    val names = types.indices.map(i => s"top: 'c$i'").mkString(" ")
    s"""layer { name: "data" type: "CoSData" $names source_class: "com.yahoo.ml.caffe.DataFrameSource"
      cos_data_param { source: "$source" batch_size: 1 ${all.mkString(" ")} } }"""
  }

  private def row(columns: String*): DataFrame = spark.range(1).selectExpr(columns: _*)

  @Test def nullsOfImagesAreLeftToTheEngineWhichTellsTheirRow(): Unit = {
    val found = read(row("'a' id", "cast(null as string) label", "cast(null as binary) data"), images).first()
    assertTrue(found.isNullAt(found.fieldIndex("label")) && found.isNullAt(found.fieldIndex("data")))
  }

  @Test def aLabelThatIsNoNumberIsTold(): Unit = {
    def told(label: String) = message(read(row("'r7' id", s"'$label' label", "'abcd' data"), images).collect())
    val said = "column 'label' of the row with id r7 is 'abc', and labels are numbers: correct it, or drop the row"
    assertTrue(told("abc").contains(said))
    assertTrue(told("").contains("column 'label' of the row with id r7 is '', and"))
    val found = read(row("'r7' id", "' 2.5 ' label", "'abcd' data"), images).first()
    assertEquals(2.5f, found.getAs[Float]("label"))
  }

  @Test def rawImagesAreResized(): Unit = {
    val rows = row("'r' id", "'1' label", "1 channels", "4 height", "4 width", "'aaaaaaaaaaaaaaaa' data")
    val found = read(rows, images, "-resize").first()
    assertEquals((2, 2), (found.getAs[Int]("height"), found.getAs[Int]("width")))
    assertEquals("aaaa", new String(found.getAs[Array[Byte]]("data"), UTF_8))
    assertEquals(4, read(rows, images).first().getAs[Int]("height"), "without the flag they stay")
    val short = row("'r' id", "'1' label", "1 channels", "4 height", "4 width", "'aaa' data")
    assertTrue(message(read(short, images, "-resize").collect()).contains(
      "column 'data' of the row with id r has 3 bytes, and its image is 1 x 4 x 4"))
  }

  @Test def anyNumberIsConverted(): Unit = {
    val rows = row("'r' id", "array(0.5D, 1.5D) c0", "7 c1", "3L c2", "2.5D c3", "array(1L, 2L) c4")
    val found = read(rows, tops("FLOAT_ARRAY", "STRING", "INT", "FLOAT", "INT_ARRAY")).first()
    assertEquals(Row("r", Seq(0.5f, 1.5f), "7", 3, 2.5f, Seq(1, 2)), found)
  }

  @Test def whatCannotBeConvertedIsTold(): Unit = {
    def told(of: String, cell: String) = message(read(row("'r' id", s"$cell c0"), tops(of)).collect())
    assertTrue(told("FLOAT", "'abc'").contains("column 'c0' of the row with id r holds 'abc', a String, which is not of" +
      " the type FLOAT of its top: cast the column to float, or change the top's type"))
    assertTrue(told("INT", "1.5D").contains("holds '1.5', a Double, which is not of the type INT"))
    assertTrue(told("FLOAT_ARRAY", "array('x', 'y')").contains("holds an array, x, y, which is not"))
    assertTrue(told("RAW_IMAGE", "'x'").contains("cast the column to binary"))
  }

  @Test def aCommandLineWithoutATaskIsRefused(): Unit =
    assertTrue(message(CaffeOnSpark.run(spark.sparkContext, Array("-conf", solver(images("nowhere")))))
      .contains("nothing to do: give -train, -test or -features BLOB,..."))
}
