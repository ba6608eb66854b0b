// SPDX-License-Identifier: Apache-2.0
package libs

import java.nio.file.{Files, Paths}

import cafetiere.dsl
import cafetiere.core.Engine
import caffe.Caffe.{NetParameter, Phase}
import com.fasterxml.jackson.databind.ObjectMapper
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class LayersTest {
  private val root = Paths.get(sys.props("root"))
  private val caffenet = root.resolve("tests/reference/nets/alexnet.prototxt").toString
  private val quick = root.resolve("examples/cifar10/quick_train_test.prototxt").toString
  private val solver = root.resolve("examples/cifar10/quick_solver.prototxt").toString

  private def lenet(): NetParameter = {
    val batchsize = 64
    NetParam("LeNet",
      RDDLayer("data", shape = List(batchsize, 1, 28, 28), None),
      RDDLayer("label", shape = List(batchsize, 1), None),
      ConvolutionLayer("conv1", List("data"), kernel = (5, 5), numOutput = 20),
      PoolingLayer("pool1", List("conv1"), pooling = Pooling.Max, kernel = (2, 2), stride = (2, 2)),
      ConvolutionLayer("conv2", List("pool1"), kernel = (5, 5), numOutput = 50),
      PoolingLayer("pool2", List("conv2"), pooling = Pooling.Max, kernel = (2, 2), stride = (2, 2)),
      InnerProductLayer("ip1", List("pool2"), numOutput = 500),
      ReLULayer("relu1", List("ip1")),
      InnerProductLayer("ip2", List("relu1"), numOutput = 10),
      SoftmaxWithLoss("loss", List("ip2", "label")))
  }

  @Test def leNetByThePositionalConstructors(): Unit = {
    val net = lenet()
    assertEquals("LeNet", net.getName)
    assertEquals(10, net.getLayerCount)
    val pool = net.getLayer(3)
    assertEquals((2, 2), (pool.getPoolingParam.getKernelH, pool.getPoolingParam.getStrideW))
    assertEquals("conv1", pool.getBottom(0))
    assertEquals("pool1", pool.getTop(0))
    assertEquals(net, dsl.Net.of(net).toProto)
    assertEquals(net, dsl.Net.parse(net.toString).toProto)
  }

  @Test def theEngineTakesTheNetThatTheyMake(): Unit = {
    val options = new ObjectMapper().createObjectNode()
      .put("phase", "TRAIN").put("solver", "base_lr: 0.01 lr_policy: 'fixed'").put("net", lenet().toString)
    val answer = Engine.describe(options.toString)
    assertTrue(answer.contains("ip2"), answer)
  }

  @Test def layersOfTheLanguageStandBesideThem(): Unit = {
    val net = NetParam("mixed", RDDLayer("data", List(1, 4), None), dsl.TanH("t", Seq("data")))
    assertEquals("TanH", net.getLayer(1).getType)
  }

  @Test def dataLayersAreReplaced(): Unit = {
    val before = ProtoLoader.loadNetPrototxt(quick)
    val net = ProtoLoader.replaceDataLayers(before, 100, 50, 3, 32, 32)
    assertEquals(before.getLayerCount + 2, net.getLayerCount)
    val replaced = (0 until 4).map { i =>
      val layer = net.getLayer(i)
      val shape = layer.getInputParam.getShape(0)
      (layer.getName, layer.getInclude(0).getPhase, (0 until shape.getDimCount).map(shape.getDim).toList)
    }
    assertEquals(
      Seq(
        ("data", Phase.TEST, List(50L, 3L, 32L, 32L)),
        ("label", Phase.TEST, List(50L, 1L)),
        ("data", Phase.TRAIN, List(100L, 3L, 32L, 32L)),
        ("label", Phase.TRAIN, List(100L, 1L))),
      replaced)
    assertEquals(before.getLayer(2), net.getLayer(4))
    val twice = assertThrows(
      classOf[IllegalArgumentException],
      () => { ProtoLoader.replaceDataLayers(before.toBuilder.removeLayer(0).build(), 1, 1, 3, 2, 2); () })
    assertTrue(twice.getMessage.contains("must be the data layers"), twice.getMessage)
  }

  @Test def aSolverHoldsTheNet(): Unit = {
    val without = ProtoLoader.loadSolverWithNetPrototxt(solver, quick, None)
    assertFalse(without.hasNet || without.hasSnapshot || without.hasSnapshotPrefix)
    assertEquals(ProtoLoader.loadNetPrototxt(quick), without.getNetParam)
    val kept = ProtoLoader.loadSolverWithNetPrototxt(solver, quick, Some("/tmp/x"))
    assertEquals("/tmp/x", kept.getSnapshotPrefix)
    assertEquals(ProtoLoader.loadSolverPrototxt(solver).getSnapshot, kept.getSnapshot)
    assertEquals(ProtoLoader.loadNetPrototxt(caffenet).getLayerCount > 10, true)
  }

  @Test def aFaultNamesFileAndLine(): Unit = {
    val file = Files.createTempFile("net", ".prototxt")
    Files.write(file, "name: 'x'\nlayer { tipe: 'y' }\n".getBytes)
    val e = assertThrows(
      classOf[IllegalArgumentException], () => { ProtoLoader.loadNetPrototxt(file.toString); () })
    assertTrue(e.getMessage.startsWith(s"$file:2:"), e.getMessage)
    Files.delete(file)
  }
}
