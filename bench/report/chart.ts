import * as echarts from 'echarts';

/** One line or one kind of bar. `null`: no figure. */
export type Series = {
  readonly name: string;
  readonly values: readonly (number | null)[];
  /** A line of what is expected, not measured. */
  readonly isDashed?: boolean;
};

/** A chart, before it is drawn. */
export type ChartDefinition = {
  /** File name without its ending. */
  readonly name: string;
  readonly title: string;
  readonly kind: 'lines' | 'bars';
  readonly x: { readonly name: string; readonly values: readonly (string | number)[] };
  readonly y: { readonly name: string; readonly isLog: boolean };
  readonly series: readonly Series[];
};

const size = { width: 760, height: 400 };

/** Readable on white and on near-black: Okabe and Ito's colours, which colour-blind readers tell apart, a little apart for each. */
const palette = {
  light: ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#8a6d00'],
  dark: ['#56b4e9', '#f0884a', '#3fcf9f', '#e5a3c8', '#e0c341'],
};

const style = `<style>
:root{--ink:#1f2328;--faint:#d5dae0;${variables(palette.light)}}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--faint:#3a424c;${variables(palette.dark)}}}
</style>`;

function variables(colours: readonly string[]): string {
  return colours.map((colour, index) => `--c${index}:${colour}`).join(';');
}

/** Draws a chart as SVG. Colours are CSS variables: one file for light and dark pages. */
export function drawChart(definition: ChartDefinition): string {
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, ...size });
  try {
    chart.setOption(optionOf(definition));
    const svg = chart.renderToSVGString();
    const title = `<title>${escapeXml(definition.title)}</title>`;
    return `${svg.replace(/^<svg([^>]*)>/, `<svg$1 role="img">${title}${style}`).trimEnd()}\n`;
  } finally {
    chart.dispose();
  }
}

function optionOf({ title, kind, x, y, series }: ChartDefinition): echarts.EChartsOption {
  const ink = 'var(--ink)';
  const axis = {
    nameTextStyle: { color: ink, fontSize: 12, align: 'left' as const },
    axisLabel: { color: ink, fontSize: 12 },
    axisLine: { lineStyle: { color: ink } },
    axisTick: { lineStyle: { color: ink } },
    splitLine: { lineStyle: { color: 'var(--faint)' } },
    minorTick: { show: false },
  };
  const isNumeric = kind === 'lines' && x.values.every((value) => typeof value === 'number');
  return {
    animation: false,
    backgroundColor: 'transparent',
    textStyle: { fontFamily: 'system-ui, sans-serif', color: ink },
    title: { text: title, left: 12, top: 8, textStyle: { color: ink, fontSize: 15, fontWeight: 600 } },
    legend: { top: 36, left: 12, itemGap: 40, textStyle: { color: ink, fontSize: 12 } },
    grid: { left: 16, right: 28, top: 96, bottom: 40, containLabel: true },
    xAxis: {
      ...axis,
      type: isNumeric ? 'log' : 'category',
      name: x.name,
      nameLocation: 'middle',
      nameGap: 30,
      splitLine: { show: false },
      ...(isNumeric
        ? { min: Math.min(...(x.values as number[])), max: Math.max(...(x.values as number[])) }
        : { data: x.values.map(String) }),
    },
    yAxis: { ...axis, type: y.isLog ? 'log' : 'value', name: y.name, nameLocation: 'end', nameGap: 14 },
    series: series.map((of, index) => seriesOf(of, index, kind, isNumeric ? (x.values as number[]) : undefined)),
  } as echarts.EChartsOption;
}

function seriesOf(of: Series, index: number, kind: ChartDefinition['kind'], xs: readonly number[] | undefined) {
  const colour = `var(--c${index % palette.light.length})`;
  const data = of.values.map((value, at) => (xs === undefined ? value : [xs[at] as number, value]));
  const common = { name: of.name, data, itemStyle: { color: colour } };
  if (kind === 'bars') {
    return {
      ...common,
      type: 'bar' as const,
      barMaxWidth: 48,
      label: {
        show: true,
        position: 'top' as const,
        color: 'var(--ink)',
        fontSize: 11,
        formatter: ({ value }: { value: number }) =>
          new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 }).format(value),
      },
    };
  }
  return {
    ...common,
    type: 'line' as const,
    connectNulls: false,
    symbol: of.isDashed ? 'none' : (['circle', 'rect', 'triangle', 'diamond'][index % 4] as string),
    symbolSize: 8,
    lineStyle: { color: colour, width: of.isDashed ? 1.5 : 2.5, type: of.isDashed ? 'dashed' : 'solid' },
  };
}

function escapeXml(words: string): string {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
