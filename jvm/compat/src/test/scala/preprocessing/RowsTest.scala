// SPDX-License-Identifier: Apache-2.0
package preprocessing

import java.nio.file.{Files, Path}

import caffe.Caffe.BlobProto
import cafetiere.spark.CaffeEstimator
import libs.{ByteImage, DefaultPreprocessor, ImageNetPreprocessor, Preprocessor, RowPreprocessor}
import org.apache.spark.sql.types._
import org.apache.spark.sql.{Row, SparkSession}
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.api.{AfterAll, Test, TestInstance}

/** A program's class: it cuts images of 4 x 5 pixels, in the middle, to train too. */
class MiddleOfImages extends RowPreprocessor(Map("image" -> Array(3, 2, 3))) {
  protected def preprocessor(schema: StructType): Preprocessor =
    new ImageNetPreprocessor(schema, Array.fill(60)(50f), 4, 5, 2, 3).forTest
}

/** What is done to the rows of DataFrames. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class RowsTest {
  private val spark = SparkSession.builder().master("local[2]").getOrCreate()

  @AfterAll def stop(): Unit = spark.stop()

  private def message(code: => Any): String =
    assertThrows(classOf[IllegalArgumentException], () => { code; () }).getMessage

  private def table(dataType: DataType, values: Any*) = {
    val rows = new java.util.ArrayList[Row]
    values.foreach(value => rows.add(Row(value)))
    spark.createDataFrame(rows, StructType(Seq(StructField("x", dataType, nullable = false))))
  }

  @Test def theDefaultKeepsValues(): Unit =
    for ((dataType, value, expected) <- Seq(
        (IntegerType, 1, Seq(1f)),
        (FloatType, 1.5f, Seq(1.5f)),
        (DoubleType, 2.5, Seq(2.5f)),
        (LongType, 3L, Seq(3f)),
        (BinaryType, Array[Byte](0, 1, -1), Seq(0f, 1f, 255f)),
        (ArrayType(FloatType), Seq(0f, 0.5f, -1f), Seq(0f, 0.5f, -1f)))) {
      val data = table(dataType, value)
      val convert = new DefaultPreprocessor(data.schema).convert("x", Array(1, expected.length))
      val buffer = new Array[Float](expected.length)
      convert(data.first()(0), buffer)
      assertEquals(expected, buffer.toSeq)
      assertTrue(message(convert(data.first()(0), new Array[Float](7))).startsWith("x has"))
    }

  @Test def nullsAreRefusedByColumnAndElement(): Unit = {
    val schema = StructType(Seq(StructField("x", ArrayType(FloatType)), StructField("label", IntegerType)))
    def told(column: String, size: Int, value: Any) =
      message(new DefaultPreprocessor(schema).convert(column, Array(size))(value, new Array[Float](size)))
    assertEquals("column x: element 1 of its array is null: fill it, or drop the row",
      told("x", 3, Row(Seq(1f, null, 2f)).get(0)))
    assertEquals("column x is null: fill it, or drop the row", told("x", 3, null))
    assertEquals("column label is null: fill it, or drop the row", told("label", 1, null))
  }

  @Test def aColumnOfAnotherTypeIsRefused(): Unit = {
    val schema = StructType(Seq(StructField("x", StringType)))
    val said = "column x has type string; cast it to float, binary or array<float>"
    assertEquals(said, message(new DefaultPreprocessor(schema).convert("x", Array(1))))
  }

  /** As a program writes it. */
  private val solver = "base_lr: 0.1 momentum: 0.9 lr_policy: 'fixed' max_iter: 5 random_seed: 1"

  @Test def aFitAndATransformTakeThemByName(): Unit = {
    val images = spark.range(40).selectExpr("id", "cast(id % 2 as int) label",
      "cast(concat_ws('', transform(sequence(1, 60), i -> char(33 + (id * i) % 90))) as binary) image")
    def estimator(name: String) = new CaffeEstimator()
      .setSolver(solver)
      .setNet("""
        layer { name: "rows" type: "MemoryData" top: "image" top: "label"
          memory_data_param { batch_size: 8 channels: 3 height: 2 width: 3 } }
        layer { name: "ip" type: "InnerProduct" bottom: "image" top: "ip"
          inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
        layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }""")
      .setFeaturesCol("image")
      .setIdCol("id")
      .setPreprocessor(name)
    val model = estimator(classOf[MiddleOfImages].getName).fit(images)
    // The same by hand.
    val preprocessor = new MiddleOfImages
    val rows = new java.util.ArrayList[Row]
    images.collect().foreach(row => rows.add(preprocessor.applyToTrain(row)))
    val cut = spark.createDataFrame(rows, preprocessor.schema(images.schema))
    val byHand = estimator("").fit(cut)
    assertArrayEquals(byHand.weights, model.weights)
    assertEquals(
      byHand.transform(cut).select("ip").collect().toSeq,
      model.transform(images).select("ip").collect().toSeq)
  }

  @Test def imagesLoseTheirMeanAndTheirMargins(): Unit = {
    val image = Array.tabulate(3 * 4 * 5)(_.toByte)
    val schema = StructType(Seq(StructField("x", BinaryType)))
    def converted(mean: Array[Float], height: Int, width: Int): Seq[Float] = {
      val preprocessor = new ImageNetPreprocessor(schema, mean, 4, 5, height, width)
      val buffer = new Array[Float](3 * height * width)
      preprocessor.convert("x", Array(3, height, width))(image, buffer)
      buffer.toSeq
    }
    val ramp = Array.tabulate(60)(_.toFloat)
    assertEquals(Seq.fill(60)(0f), converted(ramp, 4, 5))
    for (_ <- 0 until 20) {
      val part = converted(new Array[Float](60), 2, 4)
      assertTrue(Set(0f, 1f, 5f, 6f, 10f, 11f).contains(part.head), part.toString)
      val pattern = for (c <- 0 until 3; row <- 0 until 2; col <- 0 until 4) yield c * 20f + row * 5 + col
      assertEquals(pattern, part.map(_ - part.head))
    }
    assertTrue(message(converted(new Array[Float](59), 2, 4)).startsWith("meanImage"))
  }

  @Test def twoHundredFiftySixImages(): Unit = {
    val schema = StructType(Seq(StructField("x", BinaryType)))
    val convert = new ImageNetPreprocessor(schema, new Array[Float](3 * 256 * 256))
      .convert("x", Array(3, 227, 227))
    val (image, buffer) = (new Array[Byte](3 * 256 * 256), new Array[Float](3 * 227 * 227))
    val begun = System.nanoTime
    for (_ <- 0 until 256) convert(image, buffer)
    println(f"ImageNetPreprocessor: 256 images in ${(System.nanoTime - begun) / 1e9}%.3f s")
  }

  @Test def theMeanOfAColumn(@TempDir folder: Path): Unit = {
    val bytes =
      table(BinaryType, Array[Byte](0, 1, -1), Array[Byte](1, 1, -2), Array[Byte](2, 4, 0)).repartition(2)
    val mean = ComputeMean.computeMean(bytes, "x", Array(3, 1, 1))
    assertEquals(Seq(1f, 2f, (509.0 / 3).toFloat), mean.toFlat().toSeq)
    val floats = table(ArrayType(FloatType), Seq(1f, 2f), Seq(2f, 4f))
    assertEquals(Seq(1.5f, 3f), ComputeMean.computeMean(floats, "x", Array(2)).toFlat().toSeq)
    assertTrue(message(ComputeMean.computeMean(table(IntegerType, 1), "x", Array(1))).contains("type int"))
    assertEquals(
      "column x has no rows", message(ComputeMean.computeMean(bytes.limit(0), "x", Array(3, 1, 1))))

    val file = folder.resolve("mean.binaryproto")
    ComputeMean.writeMeanToBinaryProto(mean, file.toString)
    val blob = BlobProto.parseFrom(Files.readAllBytes(file))
    assertEquals((1, 3, 1, 1), (blob.getNum, blob.getChannels, blob.getHeight, blob.getWidth))
    assertEquals(2f, blob.getData(1))
  }

  @Test def theMeanOfImages(): Unit = {
    val images = Seq(Array[Byte](0, 0, -1), Array[Byte](1, 0, -1)).map(new ByteImage(_, 1, 1))
    val rows = spark.sparkContext.parallelize(images.map(image => (image, 0)), 2)
    assertEquals(
      Seq(0.5f, 0f, 255f), ComputeMean.computeMean(rows, Array(3, 1, 1), 2).toFlat().toSeq)
    val batches = spark.sparkContext.parallelize(Seq((images.toArray, Array(0, 1))))
    assertEquals(
      Seq(0.5f, 0f, 255f),
      ComputeMean.computeMeanFromMinibatches(batches, Array(3, 1, 1), 2).toFlat().toSeq)
  }
}
