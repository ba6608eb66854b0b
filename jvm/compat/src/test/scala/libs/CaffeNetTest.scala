// SPDX-License-Identifier: Apache-2.0
package libs

import java.nio.file.{Files, Path, Paths}

import scala.util.Random

import caffe.Caffe.{NetParameter, SolverParameter}
import org.apache.spark.sql.Row
import org.apache.spark.sql.types._
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/** Nets and solvers that read rows, as SparkNet's second version has them. */
class CaffeNetTest {
  @TempDir var folder: Path = _

  private val batch = 8
  private val schema = StructType(Seq(
    StructField("label", IntegerType),
    StructField("data", ArrayType(FloatType, containsNull = false))))

  private def net(dropout: Boolean = false): NetParameter = NetParameter.newBuilder().mergeFrom(
    cafetiere.dsl.Net.parse(s"""
      name: "small"
      layer { name: "data" type: "Input" top: "data"
        input_param { shape { dim: $batch dim: 1 dim: 6 dim: 6 } } }
      layer { name: "label" type: "Input" top: "label" input_param { shape { dim: $batch dim: 1 } } }
      layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
        convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
      layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
      ${if (dropout) """layer { name: "drop" type: "Dropout" bottom: "conv1" top: "conv1" }""" else ""}
      layer { name: "ip1" type: "InnerProduct" bottom: "conv1" top: "ip1"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
      layer { name: "prob" type: "Softmax" bottom: "ip1" top: "prob" include { phase: TEST } }
      layer { name: "accuracy" type: "Accuracy" bottom: "ip1" bottom: "label" top: "accuracy"
        include { phase: TEST } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip1" bottom: "label" top: "loss" }
      """).toProto).build

  private def solver(more: String = "", dropout: Boolean = false): SolverParameter = {
    val builder = SolverParameter.newBuilder
    cafetiere.protobuf.TextFormat.merge(
      s"base_lr: 0.1 lr_policy: 'step' stepsize: 2 gamma: 0.5 random_seed: 3 $more", builder)
    builder.setNetParam(net(dropout)).build
  }

  private def rows(seed: Int, count: Int): Seq[Row] = {
    val random = new Random(seed)
    Seq.fill(count) {
      val label = random.nextInt(3)
      Row(label, Array.tabulate(36)(i => random.nextFloat() + (if (i / 12 == label) 1f else 0f)))
    }
  }

  private def made() = CaffeNet(net(), schema, new DefaultPreprocessor(schema))
  private def trained(more: String = "", dropout: Boolean = false) =
    new CaffeSolver(solver(more, dropout), schema, new DefaultPreprocessor(schema))

  private def equal(a: CaffeNet, b: CaffeNet): Boolean =
    CaffeWeightCollection.checkEqual(a.getWeights(), b.getWeights(), 0)

  @Test def theOutputsAndTheirShapes(): Unit = {
    val one = made()
    val outputs = one.forward(rows(1, 20).iterator, List("conv1"))
    assertEquals(Set("prob", "accuracy", "loss", "conv1"), outputs.keySet)
    assertArrayEquals(Array(batch, 3), outputs("prob").shape)
    assertArrayEquals(Array(batch, 4, 4, 4), outputs("conv1").shape)
    assertTrue(outputs("loss").get(Array()) > 0)
    assertEquals(Seq("prob", "accuracy", "loss").toSet, one.outputSchema().fieldNames.toSet)
    assertThrows(classOf[RuntimeException], () => { one.forward(rows(1, 8).iterator, List("x")); () })
  }

  @Test def inputsAreTheRows(): Unit = {
    val sent = rows(2, batch)
    val back = made().forward(sent.iterator, List("data", "label"))
    for (i <- 0 until batch) {
      assertArrayEquals(sent(i).getAs[Array[Float]](1), back("data").slice(0, i).toFlat())
      assertEquals(sent(i).getInt(0).toFloat, back("label").get(Array(i, 0)))
    }
  }

  @Test def fewerRowsThanABatchLeaveNoOldOnes(): Unit = {
    val one = made()
    val whole = one.forward(rows(3, batch).iterator)("prob")
    val part = one.forward(rows(3, batch).take(3).iterator)("prob")
    assertArrayEquals(Array(3, 3), part.shape)
    assertArrayEquals(whole.subarray(Array(0, 0), Array(3, 3)).toFlat(), part.toFlat(), 1e-6f)
    assertArrayEquals(Array(batch, 3), one.forward(rows(3, 9).iterator)("prob").shape)
    assertThrows(classOf[NoSuchElementException], () => { one.forward(Iterator.empty); () })
  }

  @Test def passesLeaveTheWeightsAndGradientsAreThere(): Unit = {
    val one = made()
    val before = one.getWeights()
    assertEquals(Set("conv1", "ip1"), before.keySet)
    one.forward(rows(4, batch).iterator)
    one.forwardBackward(rows(4, batch).iterator)
    assertTrue(CaffeWeightCollection.checkEqual(before, one.getWeights(), 0))
    val gradient = one.getGradients()("ip1").head
    one.forwardBackward(rows(4, batch).iterator) // not added up
    assertTrue(NDArray.checkEqual(gradient, one.getGradients()("ip1").head, 0))
    assertTrue(gradient.toFlat().exists(_ != 0))
  }

  @Test def weightsAreSavedLoadedAndSet(): Unit = {
    for (ending <- Seq("caffemodel", "caffemodel.h5")) {
      val (one, other) = (made(), made())
      val changed = one.getWeights()
      changed.values.foreach(_.foreach(_.scalarDivide(3)))
      assertFalse(CaffeWeightCollection.checkEqual(changed, one.getWeights(), 1e-9f))
      one.setWeights(changed)
      val file = folder.resolve("w." + ending).toString
      one.saveWeightsToFile(file)
      other.copyTrainedLayersFrom(file)
      assertTrue(equal(one, other))
      val outputs = Seq(one, other).map(_.forward(rows(1, batch).iterator)("prob").toFlat())
      assertArrayEquals(outputs.head, outputs.last)
    }
    val fewer = made().getWeights()
    fewer.remove("ip1")
    val told = assertThrows(classOf[IllegalArgumentException], () => made().setWeights(fewer))
    assertTrue(told.getMessage.startsWith("layer ip1"), told.getMessage)
  }

  /** SparkNet's iterations stayed 0, so that the rate never fell, and gradients were not cleared. */
  @Test def stepsFollowThePolicyAndTheFormula(): Unit = {
    val one = trained()
    val (before, data) = (one.trainNet.getWeights(), rows(5, batch))
    one.trainNet.forwardBackward(data.iterator)
    val gradient = one.trainNet.getGradients()("ip1").head.toFlat()
    one.step(data.iterator)
    val after = one.trainNet.getWeights()("ip1").head.toFlat()
    for (i <- after.indices)
      assertEquals(before("ip1").head.toFlat()(i) - 0.1f * gradient(i), after(i), 1e-6f)
    for (_ <- 0 until 3) one.step(data.iterator)
    assertEquals(4, one.iter)
    assertEquals(0.05f, one.rate, 1e-7f)
  }

  /** SparkNet's programs drop rows at the begin, and take each step from what is left. */
  @Test def stepsGoOnInAPartOfAnIterator(): Unit = {
    val one = trained()
    val window = rows(5, 3 + 2 * batch).iterator.drop(3)
    one.step(window)
    one.step(window)
    assertEquals((2, false), (one.iter, window.hasNext))
  }

  @Test def aSolverLearnsAndGoesOnFromASnapshot(): Unit = {
    def adam() = new CaffeSolver(
      solver().toBuilder.setType("Adam").setBaseLr(0.01f).setMomentum(0.9f).setStepsize(1000)
        .setSnapshotPrefix(folder.resolve("s").toString).setSnapshot(1).build,
      schema,
      new DefaultPreprocessor(schema))
    val (one, again) = (adam(), adam())
    val data = rows(6, 400).grouped(batch).toSeq
    data.foreach(rows => one.step(rows.iterator))
    val accuracy = one.trainNet.forward(rows(7, batch).iterator)("accuracy").get(Array())
    assertTrue(accuracy > 0.8, s"accuracy $accuracy")
    assertEquals(0, folder.toFile.list.length) // none unless it is asked for
    one.snapshot()
    again.restore(folder.resolve("s_iter_50.solverstate").toString)
    Seq(one, again).foreach(_.step(data.head.iterator))
    assertTrue(equal(one.trainNet, again.trainNet))
  }

  @Test def eachPassOfAnIterationHasRowsOfItsOwn(): Unit = {
    val data = rows(8, 2 * batch)
    val (one, by) = (trained("iter_size: 2"), trained())
    val it = data.iterator
    one.step(it)
    assertFalse(it.hasNext)
    val before = by.trainNet.getWeights()("ip1").head.toFlat()
    val sums = data.grouped(batch).map { rows =>
      by.trainNet.forwardBackward(rows.iterator)
      by.trainNet.getGradients()("ip1").head.toFlat()
    }.reduce((a, b) => a.zip(b).map { case (x, y) => x + y })
    val after = one.trainNet.getWeights()("ip1").head.toFlat()
    for (i <- after.indices) assertEquals(before(i) - 0.1f * sums(i) / 2, after(i), 1e-5f)
    assertThrows(classOf[NoSuchElementException], () => one.step(rows(1, batch).iterator))
  }

  /** SparkNet tested with the net of phase TRAIN. */
  @Test def askingANetDropsNothing(): Unit = {
    val one = trained(dropout = true)
    one.step(rows(9, batch).iterator)
    val outputs = Seq.fill(2)(one.trainNet.forward(rows(9, batch).iterator)("prob").toFlat())
    assertArrayEquals(outputs.head, outputs.last)
  }

  @Test def imagesAreCutInTheMiddleWhereANetIsAsked(): Unit = {
    val bytes = StructType(Seq(StructField("data", BinaryType)))
    val images = new ImageNetPreprocessor(bytes, new Array[Float](3 * 16), 4, 4, 2, 2)
    val image = Array.tabulate[Byte](48)(_.toByte)
    val buffers = Seq.fill(20) {
      val buffer = new Array[Float](12)
      images.forTest.convert("data", Array(3, 2, 2))(image, buffer)
      buffer.toSeq
    }
    assertEquals(Set(Seq(5f, 6f, 9f, 10f, 21f, 22f, 25f, 26f, 37f, 38f, 41f, 42f)), buffers.toSet)
  }

  @Test def aColumnThatIsNotThereIsNamed(): Unit = {
    val other = StructType(Seq(StructField("label", IntegerType)))
    val told = assertThrows(
      classOf[IllegalArgumentException],
      () => { CaffeNet(net(), other, new DefaultPreprocessor(other)).forward(rows(1, 8).iterator); () })
    assertTrue(told.getMessage.contains("input data needs a column"), told.getMessage)
  }

  @Test def objectsStayInTheirJvm(): Unit = {
    val store = new WorkerStore
    store.put("net", "x")
    assertEquals("x", store.get[String]("net"))
    assertThrows(classOf[NoSuchElementException], () => { store.get[Int]("nothing"); () })
    val file = folder.resolve("log.txt")
    val log = new Logger(file.toString)
    log.log("begun")
    log.log("accuracy", 5)
    val lines = new String(Files.readAllBytes(Paths.get(file.toString))).split("\n")
    assertTrue(lines(0).matches("[0-9.]+: begun") && lines(1).matches("[0-9.]+, i = 5: accuracy"))
  }
}
