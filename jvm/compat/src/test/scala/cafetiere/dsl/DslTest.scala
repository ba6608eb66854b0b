// SPDX-License-Identifier: Apache-2.0
package cafetiere.dsl

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}

import caffe.Caffe.LayerParameter
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class DslTest {

  @Test def aLayerIsItsPrototxt(): Unit = {
    val (rate, wide) = (1, 0.01)
    val layer = Convolution(
      "conv1",
      Seq("data"),
      numOutput = 20,
      kernelSize = Seq(5),
      weightFiller = Filler("gaussian", std = wide),
      param = Seq(ParamSpec(lrMult = rate), ParamSpec(lrMult = 2)),
      include = Seq(NetStateRule(phase = Phase.Train, stage = Seq("a", "b"))))
    assertEquals(
      """name: "conv1" type: "Convolution" bottom: "data" top: "conv1" param { lr_mult: 1.0 }
        |param { lr_mult: 2.0 } include { phase: TRAIN stage: "a" stage: "b" } convolution_param {
        |num_output: 20 kernel_size: 5 weight_filler { type: "gaussian" std: 0.01 } }""".stripMargin
        .replace('\n', ' '),
      layer.toString.trim.replaceAll("\\s+", " "))
    assertEquals(layer, Convolution.parse(layer.toString))
  }

  @Test def enumsAreScalaValues(): Unit = {
    val pooling = Pooling("pool1", Seq("conv1"), pool = Pooling.PoolMethod.Ave, kernelSize = 2)
    assertEquals("AVE", pooling.toProto.getPoolingParam.getPool.name)
    assertEquals(Value(Pooling.PoolMethod.Ave), Pooling.parse(pooling.toString).pool)
    val loss = SoftmaxWithLoss(
      "loss", Seq("ip", "label"), lossParam = Loss(normalization = Loss.NormalizationMode.Full))
    assertEquals("FULL", loss.toProto.getLossParam.getNormalization.name)
  }

  @Test def whatIsLeftOutIsNotWritten(): Unit = {
    assertFalse(ReLU("relu1", Seq("ip1")).toProto.hasReluParam)
    assertEquals(Seq("ip1"), ReLU("relu1", Seq("ip1"), top = Seq("ip1")).top)
    assertEquals(Nil, Silence("silence", Seq("ip1"), top = Nil).top)
  }

  @Test def aMisspeltArgumentDoesNotCompile(): Unit = {
    def layer(argument: String) =
      s"""cafetiere.dsl.InnerProduct("ip1", Seq("data"), $argument = 10)"""
    assertEquals(None, Scalac.fault(layer("numOutput")))
    val fault = Scalac.fault(layer("numOutputs"))
    assertTrue(fault.exists(_.contains("numOutputs")), fault.toString)
    assertNotEquals(None, Scalac.fault(layer("biasTerm")), "10 is no Boolean")
    assertNotEquals(None, Scalac.fault("cafetiere.dsl.Clip(\"clip\", min = 0f)"), "max is missing")
  }

  @Test def aFieldWithoutAnArgumentIsRefusedByName(): Unit = {
    def message(code: => Any): String =
      assertThrows(classOf[IllegalArgumentException], () => { code; () }).getMessage
    val other = LayerParameter.newBuilder().setName("relu1").setType("ReLU")
    other.getConvolutionParamBuilder.setNumOutput(1)
    assertEquals(
      "layer relu1: type ReLU takes no convolution_param; leave it out, or bring an older file up to " +
        "date first",
      message(Layer.of(other.build())))
    assertTrue(message(Net.parse("layers { name: 'old' }")).contains("takes no layers"))
    assertTrue(message(Net.parse("layer { name: 'x' type: 'Konv' }")).startsWith("layer x: there is no"))
    assertTrue(message(Net.parse("name: 'x'\nlayer { nome: 'y' }")).startsWith("2:"))
  }

  @Test def theExamplesOfThePageRun(): Unit = {
    val page = Paths.get(sys.props("root"), "docs/migration-sparknet.md")
    val blocks = "(?s)```scala\n(.*?)```".r
      .findAllMatchIn(new String(Files.readAllBytes(page), UTF_8)).map(_.group(1)).toList
    assertTrue(blocks.nonEmpty)
    blocks.foreach(Scalac.run)
  }
}
