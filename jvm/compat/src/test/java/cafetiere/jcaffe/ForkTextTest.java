// SPDX-License-Identifier: Apache-2.0
package cafetiere.jcaffe;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import caffe.Caffe.ConvolutionParameter;
import caffe.Caffe.NetParameter;
import cafetiere.protobuf.TextFormat;
import com.yahoo.ml.jcaffe.Utils;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import libs.ProtoLoader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Texts of forks, read by each of the old systems' readers. */
class ForkTextTest {
  private static final String NET = "name: 'n' engine: 'MKLDNN' default_forward_type: FLOAT16\n"
      + "layer { name: 'c' type: 'Convolution' forward_math: FLOAT bottom: 'x' top: 'y'\n"
      + "  convolution_param { num_output: 3 engine: MKL2017 cudnn_convolution_algo_seeker: FINDEX }\n"
      + "  quantization_param { scale_params: 1 scale_params: 2 } }\n"
      + "layer { name: 'd' type: 'Convolution' convolution_param { engine: MKLDNN num_output: 4 } }\n";

  @Test
  void whatHasNoEffectIsLeftOut(@TempDir Path folder) throws Exception {
    Path file = folder.resolve("net.prototxt");
    Files.writeString(file, NET);
    NetParameter net = Utils.GetNetParam(file.toString());
    assertEquals(net, ProtoLoader.loadNetPrototxt(file.toString()));
    assertEquals("n", net.getName());
    assertEquals(2, net.getLayerCount());
    ConvolutionParameter first = net.getLayer(0).getConvolutionParam();
    assertEquals(3, first.getNumOutput());
    assertEquals(4, net.getLayer(1).getConvolutionParam().getNumOutput());
    assertTrue(!first.hasEngine());
  }

  @Test
  void otherFieldsAreFaults() {
    TextFormat.ParseException e = assertThrows(TextFormat.ParseException.class,
        () -> ForkText.merge("net", NET + "layer { debug: true what: 1 }", NetParameter.newBuilder()));
    assertTrue(e.getMessage().contains("what"), e.getMessage());
    assertThrows(TextFormat.ParseException.class,
        () -> ForkText.merge("net", "name: 'n' layer {", NetParameter.newBuilder()));
  }

  @Test
  void theFieldsAreTheEngines() throws Exception {
    String words = Files.readString(Path.of("../../core/model/foreign_words.cc"));
    String table = words.substring(words.indexOf("kIgnored = "), words.indexOf("struct Advice"));
    List<String> engines = Pattern.compile("\\{\"(\\w+)\", ").matcher(table).results()
        .map((MatchResult field) -> field.group(1)).collect(Collectors.toList());
    List<String> here =
        Files.readAllLines(Path.of("src/main/resources/cafetiere/jcaffe/ignored-fields.txt"));
    assertEquals(engines, here.subList(1, here.size()));
  }
}
