// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe.tools

import java.io.{ByteArrayOutputStream, ObjectOutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}

import cafetiere.spark.{CaffeEstimator, CaffeModel, Submit}
import com.yahoo.ml.caffe.tools.CaptionNet.Length
import org.apache.hadoop.io.BytesWritable
import org.apache.spark.sql.functions.{col, udf}
import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.api.{AfterAll, BeforeAll, Test, TestInstance}

/** CaffeOnSpark's tools, and the captions that they are for. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class ToolsTest {
  private val Count = 60
  private var folder: Path = _
  private var spark: SparkSession = _

  @BeforeAll def start(@TempDir made: Path): Unit = {
    folder = made
    spark = SparkSession.builder().master("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    Files.createDirectory(folder.resolve("pictures"))
    Pictures.draw(folder.resolve("pictures"), Count)
  }

  @AfterAll def stop(): Unit = spark.stop()

  private def uri(name: String) = folder.resolve(name).toUri.toString
  private def write(name: String, text: String) = Files.write(folder.resolve(name), text.getBytes(UTF_8)).toString
  private def picture(id: Int) = Files.readAllBytes(folder.resolve("pictures").resolve(Pictures.file(id)))

  private def message(code: => Any): String = {
    val error = assertThrows(classOf[Exception], () => { code; () })
    Iterator.iterate[Throwable](error)(_.getCause).takeWhile(_ != null).map(_.getMessage).mkString("\n")
  }

  @Test def imageFilesBecomeASequenceFile(): Unit = {
    val labels = write("labels.txt", "picture_0.png 4\npicture_1.png 7\n\n")
    Binary2Sequence.main(
      Array("-imageRoot", uri("pictures"), "-labelFile", labels, "-output", uri("sequence")))
    val rows = spark.read.format("sequence").load(uri("sequence")).orderBy("id").collect()
    assertEquals(
      Seq("picture_0.png 4 true", "picture_1.png 7 true"),
      rows.map(row => s"${row.getString(0)} ${row.getString(1)} ${row.getBoolean(5)}").toSeq)
    assertArrayEquals(picture(1), rows(1).getAs[Array[Byte]]("data"))

    assertTrue(message(Binary2Sequence.main(Array("-labelFile", labels))).startsWith("-imageRoot is missing"))
    val wrong = write("wrong.txt", "nowhere.png 4\n")
    val said = message(
      Binary2Sequence.main(Array("-imageRoot", uri("pictures"), "-labelFile", wrong, "-output", uri("x"))))
    assertTrue(said.contains("there is no file") && said.contains("nowhere.png"), said)
    val three = message(Binary2Sequence.table(spark, uri("pictures"), write("three.txt", "a 1 2")).count())
    assertTrue(three.contains("has 3 words, where each line is to have 2"), three)
  }

  @Test def keysMayBePairs(): Unit = {
    val records = Seq("a" -> "4", "b" -> "7").map { case (id, label) =>
      val bytes = new ByteArrayOutputStream
      val out = new ObjectOutputStream(bytes)
      out.writeObject(new Pair(id, label))
      out.close()
      (bytes.toByteArray, s"file $id".getBytes(UTF_8))
    }
    spark.sparkContext.parallelize(records, 1).map { case (key, value) =>
      (new BytesWritable(key), new BytesWritable(value))
    }.saveAsSequenceFile(uri("pairs"))
    assertEquals(Seq("[a,4,file a]", "[b,7,file b]"),
      spark.read.format("sequence").load(uri("pairs")).selectExpr("id", "label", "string(data)").collect()
        .map(_.toString).toSeq)
  }

  @Test def imageFilesBecomeADataFrame(): Unit = {
    val labels = write("ids.txt", "picture_2.png 4 two\npicture_3.png 7 three\n")
    Binary2DataFrame.main(Array("-imageRoot", uri("pictures"), "-labelFile", labels, "-output", uri("frame"),
      "-outputFormat", "parquet"))
    val frame = spark.read.parquet(uri("frame"))
    assertEquals("SampleID string,label int,data binary",
      frame.schema.map(field => s"${field.name} ${field.dataType.simpleString}").mkString(","))
    val row = frame.filter("SampleID = 'three'").first()
    assertEquals(7, row.getInt(1))
    assertArrayEquals(picture(3), row.getAs[Array[Byte]](2))
    val bad = message(Binary2DataFrame.table(spark, uri("pictures"), write("bad.txt", "picture_2.png x two")).count())
    assertTrue(bad.contains("the label of picture_2.png"), bad)
  }

  @Test def anLmdbBecomesBoth(): Unit = {
    spark.range(6).selectExpr("concat('k', id) id", "cast(id as int) label", "3 channels", "1 height", "2 width",
      "binary('adbecf') data").coalesce(1).write.format("lmdb").save(uri("db"))
    LMDB2DataFrame.main(Array("-imageRoot", uri("db"), "-output", uri("db_frame"), "-outputFormat", "parquet",
      "-lmdb_partitions", "2"))
    val frame = spark.read.parquet(uri("db_frame")).orderBy("id")
    assertEquals("id string,label string,channels int,height int,width int,encoded boolean,data binary",
      frame.schema.map(field => s"${field.name} ${field.dataType.simpleString}").mkString(","))
    val last = frame.collect().last
    assertEquals("k5 5 3 1 2 false abcdef",
      (last.toSeq.take(6) :+ new String(last.getAs[Array[Byte]](6), UTF_8)).mkString(" "))

    LMDB2Sequence.main(Array("-imageRoot", uri("db"), "-output", uri("db_sequence")))
    val read = spark.read.format("sequence").load(uri("db_sequence")).orderBy("id")
    assertEquals(frame.selectExpr("id", "label", "height", "string(data)").collect().toSeq,
      read.selectExpr("id", "label", "height", "string(data)").collect().toSeq)

    spark.range(1).selectExpr("'n' id", "array(1f) float_data", "1 channels", "1 height", "1 width")
      .write.format("lmdb").save(uri("numbers"))
    assertTrue(message(LMDB2DataFrame.table(spark, uri("numbers"), 0).collect())
      .contains("holds numbers and no image; its key is n"))
  }

  @Test def sentencesAreWords(): Unit =
    for ((sentence, words) <- Seq(
        "A man, riding a Wave." -> "a man , riding a wave",
        "Two dogs" -> "two dogs",
        "it's  here..." -> "it ' s here ...",
        " . " -> "",
        "" -> ""))
      assertEquals(words, Conversions.sentence2Words(sentence).mkString(" "))

  @Test def wordsHaveTheNumbersThatNetsCountWith(): Unit = {
    val session = spark
    import session.implicits._
    val data = Seq("b a.", "b c", "b a d", null).toDF("caption")
    val vocab = new Vocab(spark.sqlContext)
    vocab.genFromData(data, "caption", 3)
    assertEquals(Map("UNK" -> 1, "b" -> 2, "a" -> 3, "c" -> 4), vocab.word2indexMap())
    assertTrue(vocab.word2indexMap()("b") > Vocab.VALID_TOKEN_INDEX)
    vocab.save(uri("vocab"))
    assertEquals("UNK\nb\na\nc\n", new String(Files.readAllBytes(Paths.get(uri("vocab").stripPrefix("file:"), "part-00000")), UTF_8))
    val loaded = new Vocab(spark.sqlContext)
    loaded.load(uri("vocab"))
    assertEquals(vocab.word2indexMap(), loaded.word2indexMap())
    assertEquals(Map(0 -> "<EOS>", 1 -> "UNK", 2 -> "b", 3 -> "a", 4 -> "c"), loaded.index2wordMap())
    assertTrue(message(loaded.load(write("no.txt", "a\n"))).contains("its first line is not UNK"))
    vocab.genFromData(data, "caption")
    assertEquals(5, vocab.word2indexMap().size)

    Pictures.draw(folder, 1)
    val captions = Seq((9L, 20, 24, Pictures.file(0), "b x c"), (8L, 20, 24, Pictures.file(0), "a a a a a a"))
      .toDF("id", "height", "width", "file", "caption")
    val rows = Conversions.ImageCaption2Embedding(folder.toUri.toString, captions, loaded, Length)
    assertEquals(
      "[9,[0,2,1,4,-1],[0,1,1,1,-1],[2,1,4,0,-1],0,24] [8,[0,3,3,3,3],[0,1,1,1,1],[3,3,3,3,0],0,24]",
      rows.selectExpr("id", "array_join(input_sentence, ',')", "array_join(cont_sentence, ',')",
        "array_join(target_sentence, ',')", "label", "data.width").collect()
        .map(row => row.toSeq.map { case s: String if s.contains(",") => s"[$s]"; case x => x }.mkString("[", ",", "]"))
        .mkString(" "))
    for (column <- Seq("input_sentence", "target_sentence"))
      assertEquals(Seq("b UNK c", "a a a a"),
        Conversions.Embedding2Caption(rows, loaded, column, "text").select("text").as[String].collect().toSeq, column)
  }

  @Test def imagesWithoutCaptions(): Unit = {
    Pictures.coco(folder.resolve("images.json"), 3, isCaptioned = false)
    CocoDataSetConverter.main(Array("-imageRoot", uri("pictures"), "-captionFile", uri("images.json"),
      "-output", uri("plain"), "-imageCaptionDFDir", "/files", "-embeddingDFDir", "/rows", "-outputFormat", "parquet"))
    assertEquals(Set("coco/0", "coco/1", "coco/2"),
      spark.read.json(uri("plain/files")).select("url").collect().map(_.getString(0)).toSet)
    val rows = spark.read.parquet(uri("plain/rows")).orderBy("id")
    assertEquals(Seq("id", "data", "label"), rows.columns.toSeq)
    assertArrayEquals(picture(2), rows.select("data.image").collect().last.getAs[Array[Byte]](0))
  }

  /** From COCO's file to captions that a net writes, word after word. */
  @Test def aNetTellsWhatIsInAPicture(): Unit = {
    Pictures.coco(folder.resolve("captions.json"), Count, isCaptioned = true)
    val args = Array("-imageRoot", uri("pictures"), "-captionFile", uri("captions.json"), "-output", uri("coco"),
      "-imageCaptionDFDir", "/captions", "-vocabDir", "/vocab", "-captionLength", Length.toString,
      "-vocabSize", (CaptionNet.Classes - 2).toString, "-outputFormat", "parquet")
    CocoDataSetConverter.main(args ++ Array("-embeddingDFDir", "/rows"))
    val vocab = new Vocab(spark.sqlContext)
    vocab.load(uri("coco/vocab"))
    val table = spark.read.parquet(uri("coco/rows"))
    val model = new CaffeEstimator().setSolver(CaptionNet.solver).setNet(CaptionNet.net)
      .setResize(true).setIdCol("id").setNumWorkers(2).fit(table)
    val told = captions(model, table, vocab)
    val right = told.count { case (id, text) => text == Pictures.caption(id.toInt).toLowerCase.stripSuffix(".") }
    assertTrue(right >= 0.95 * Count, s"$right of $Count: ${told.take(6)}")

    // The command line knows the solver's stages, too: without them the net has no blob of this name.
    Files.write(folder.resolve("captions.net"), CaptionNet.net.getBytes(UTF_8))
    Files.write(folder.resolve("captions.solver"), s"net: 'captions.net' ${CaptionNet.solver}".getBytes(UTF_8))
    Files.write(folder.resolve("captions.model"), model.weights())
    Submit.run(spark, "-conf", folder.resolve("captions.solver").toString, "-model", uri("captions.model"),
      "-features", "probabilities", "-resize", "-testData", uri("coco/rows"), "-output", uri("features"))
    val features = spark.read.json(uri("features")).filter("SampleID = '0'").first().getAs[scala.collection.Seq[Double]]("probabilities")
    val expected = model.setOutputCols("probabilities").setPredictionCol("").transform(table)
      .filter("id = '0'").select("probabilities").first().getAs[scala.collection.Seq[Float]](0)
    assertEquals(expected, features.map(_.toFloat))
  }

  /** The most likely word after those that are there, one at a time. */
  private def captions(model: CaffeModel, table: DataFrame, vocab: Vocab): Map[String, String] = {
    model.setOutputCols("probabilities").setPredictionCol("")
    val images = table.select("id", "data")
    var told = images.select("id").collect().map(_.getString(0) -> Seq[Int]()).toMap
    for (step <- 0 until Length) {
      val soFar = told
      val input = udf((id: String) => (0 +: soFar(id)).padTo(Length, -1))
      val cont = udf((id: String) => (0 +: soFar(id).map(_ => 1)).padTo(Length, -1))
      val next = model.transform(
        images.withColumn("input_sentence", input(col("id"))).withColumn("cont_sentence", cont(col("id"))))
      told = next.select("id", "probabilities").collect().map { case Row(id: String, all) =>
        val scores = all.asInstanceOf[scala.collection.Seq[Float]].slice(step * CaptionNet.Classes, (step + 1) * CaptionNet.Classes)
        id -> (soFar(id) :+ scores.indexOf(scores.max))
      }.toMap
    }
    val rows = spark.createDataFrame(told.toSeq).toDF("id", "words")
    Conversions.Embedding2Caption(rows, vocab, "words", "text").select("id", "text").collect()
      .map(row => row.getString(0) -> row.getString(1)).toMap
  }
}
